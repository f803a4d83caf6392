from binomial_broadcast import binomial_broadcast
from binomial_reduce import binomial_reduce

pattern tree_all_reduce(x: float32[n], n = 4Ki, op = sum):
    """All-reduce up a binomial tree and down again.

    2 ceil(log2(world)) steps of n elements, for any world. For small tensors; each of the two
    halves is a pattern with a contract of its own, and together they are this one's.
    """
    ensure x == op(old(x) @ r for r in ranks)

    binomial_reduce(x, op=op)
    binomial_broadcast(x)
