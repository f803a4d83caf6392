pattern ring_all_reduce(x: dtype[n], n = 1Mi, op = sum, dtype = float32):
    """All-reduce around a ring: sum the parts on their way round, then pass the sums round.

    2 (world - 1) steps of n / world elements. A rank sends 2 (world - 1) / world of its data in
    all, the least that is possible, and talks to its two neighbours only: for large tensors.
    Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
    workstations, JPDC 2009.
    """
    ensure x == op(old(x) @ r for r in ranks)
    preset dgx: world = 8, n = 256Mi

    let part = x.chunks(world)

    # Reduce-scatter: at the end, this rank holds the whole sum of part[rank + 1].
    for s in range(world - 1):
        let coming = part[(rank - s - 1) % world]
        temp inbox: like coming
        parallel:
            send(part[(rank - s) % world], dst=ranks.next)
            recv(inbox, src=ranks.prev)
        inbox -> coming, op=op

    # All-gather: each finished part goes once round.
    for s in range(world - 1):
        parallel:
            send(part[(rank + 1 - s) % world], dst=ranks.next)
            recv(part[(rank - s) % world], src=ranks.prev)
