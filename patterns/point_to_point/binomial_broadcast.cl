pattern binomial_broadcast(x: dtype[n], n = 1Mi, root = 0, dtype = float32):
    """Broadcast down a binomial tree: in each step, every rank that has x sends it to one more.

    ceil(log2(world)) steps of n elements, the fewest there can be; the root sends in all of them.
    For tensors so small that the number of steps is what counts.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    require 0 <= root < world, "the root is one of the ranks"
    ensure x == old(x) @ root

    let at(v) = (v + root) % world  # the rank v places after the root

    for k in range(log2ceil(world)):
        let have = 1 << k
        parallel for v in range(min(have, world - have)):
            x @ at(v) -> x @ at(v + have)
