pattern binomial_broadcast(x: float32[n], n = 1Mi, root = 0):
    """Broadcast down a binomial tree: in each step, every rank that has x sends it to one more.

    ceil(log2(world)) steps of n elements: the ranks that have x double each time.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    ensure x == old(x) @ root

    let at(v) = (v + root) % world                  # the rank v places after the root

    for k in range(log2ceil(world)):
        let have = 1 << k
        parallel for v in range(min(have, world - have)):
            x @ at(v) -> x @ at(v + have)
