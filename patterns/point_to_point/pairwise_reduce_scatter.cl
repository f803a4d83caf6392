pattern pairwise_reduce_scatter(
    part: dtype[share(n, world, rank)],
    x: dtype[n],
    n = 1Mi,
    op = sum,
    dtype = float32,
):
    """Reduce-scatter in pairs: every rank sends each other its part, and adds up what comes in.

    world - 1 steps of n / world elements, as around the ring, but x is only read and no copy of
    it is made.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    ensure part == op((old(x) @ r).chunks(world)[rank] for r in ranks)
    ensure x == old(x)
    preset dgx: world = 8, n = 256Mi

    let parts = x.chunks(world)
    temp inbox: like part

    parts[rank] -> part
    for s in range(1, world):
        let to = (rank + s) % world
        parallel:
            send(parts[to], dst=to)
            recv(inbox, src=(rank - s) % world)
        inbox -> part, op=op
