from binomial_broadcast import binomial_broadcast
from binomial_reduce import binomial_reduce

pattern tree_all_reduce(x: dtype[n], n = 4Ki, op = sum, dtype = float32):
    """All-reduce up a binomial tree and down again.

    2 ceil(log2(world)) steps of n elements, for any world. For small tensors. Each of the two
    halves is a pattern with a contract of its own, and together they are this one's.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    ensure x == op(old(x) @ r for r in ranks)

    binomial_reduce(x, op=op)
    binomial_broadcast(x)
