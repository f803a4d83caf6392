pattern binomial_reduce(x: dtype[n], n = 1Mi, root = 0, op = sum, dtype = float32):
    """Reduce up a binomial tree: in each step, the farther half of the ranks adds to the nearer.

    ceil(log2(world)) steps of n elements; a rank sends once and is done. As with torch's reduce,
    only the root's x is promised; the others are left with parts of the result.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    require 0 <= root < world, "the root is one of the ranks"
    ensure x @ root == op(old(x) @ r for r in ranks)

    let at(v) = (v + root) % world  # the rank v places after the root

    for k in reversed(range(log2ceil(world))):
        let near = 1 << k
        parallel for v in range(min(near, world - near)):
            x @ at(v + near) -> x @ at(v), op=op
