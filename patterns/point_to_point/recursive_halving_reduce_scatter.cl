pattern recursive_halving_reduce_scatter(
    part: dtype[share(n, world, rank)],
    x: dtype[n],
    n = 1Mi,
    op = sum,
    dtype = float32,
):
    """Reduce-scatter by halving: partners split what is left between them, then part for good.

    log2(world) steps of n/2, n/4, … elements, the farthest partner first. x stays as it is, at
    the price of a copy to add in.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    require world == 1 << log2(world), "every rank needs a partner in each step: a power of two"
    ensure part == op((old(x) @ r).chunks(world)[rank] for r in ranks)
    ensure x == old(x)

    temp work: like x
    let parts = work.chunks(world)
    let block(r, d) = parts[r // d * d : r // d * d + d]  # the d parts that rank r's group keeps

    x -> work
    for k in reversed(range(log2(world))):
        let d = 1 << k
        let partner = rank ^ d
        temp inbox: like block(rank, d)
        parallel:
            send(block(partner, d), dst=partner)
            recv(inbox, src=partner)
        inbox -> block(rank, d), op=op
    parts[rank] -> part
