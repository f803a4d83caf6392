pattern recursive_doubling_all_reduce(x: dtype[n], n = 4Ki, op = sum, dtype = float32):
    """All-reduce by doubling: partners swap and add all they have, ever farther apart.

    log2(world) steps of n elements: the fewest steps there can be, and more bytes than need be.
    For tensors so small that the number of steps is what counts.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    require world == 1 << log2(world), "every rank needs a partner in each step: a power of two"
    ensure x == op(old(x) @ r for r in ranks)

    temp inbox: like x

    for k in range(log2(world)):
        parallel for r in ranks:
            x @ r -> inbox @ (r ^ (1 << k))
        inbox -> x, op=op
