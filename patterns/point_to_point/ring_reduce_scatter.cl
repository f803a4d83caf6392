pattern ring_reduce_scatter(
    part: dtype[share(n, world, rank)],
    x: dtype[n],
    n = 1Mi,
    op = sum,
    dtype = float32,
):
    """Reduce-scatter around a ring: each part collects every rank's share on its way home.

    world - 1 steps of n / world elements. x stays as it is, at the price of a copy to add in.
    Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
    workstations, JPDC 2009.
    """
    ensure part == op((old(x) @ r).chunks(world)[rank] for r in ranks)
    ensure x == old(x)
    preset dgx: world = 8, n = 256Mi

    temp work: like x
    let parts = work.chunks(world)

    x -> work
    for s in range(world - 1):
        let coming = parts[(rank - s - 2) % world]  # in the last step, parts[rank]
        temp inbox: like coming
        parallel:
            send(parts[(rank - s - 1) % world], dst=ranks.next)
            recv(inbox, src=ranks.prev)
        inbox -> coming, op=op
    parts[rank] -> part
