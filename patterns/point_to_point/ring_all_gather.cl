pattern ring_all_gather(
    whole: dtype[n],
    part: dtype[share(n, world, rank)],
    n = 1Mi,
    dtype = float32,
):
    """All-gather around a ring: pass on to the next rank what came from the previous one.

    world - 1 steps of n / world elements: no rank receives a byte twice. The parts may differ in
    length by one, so any n will do.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    ensure whole == concat(old(part) @ r for r in ranks)
    preset dgx: world = 8, n = 256Mi

    let parts = whole.chunks(world)

    part -> parts[rank]
    for s in range(world - 1):
        parallel:
            send(parts[(rank - s) % world], dst=ranks.next)
            recv(parts[(rank - s - 1) % world], src=ranks.prev)
