pattern pairwise_all_gather(whole: float32[n], part: float32[share(n, world, rank)], n = 1Mi):
    """All-gather in pairs: every rank sends its part to each other, one after another.

    world - 1 steps of n / world elements. As many as around the ring, but nobody forwards: a slow
    rank delays its own part only.
    """
    ensure whole == concat(old(part) @ r for r in ranks)
    preset dgx: world = 8, n = 256Mi

    let parts = whole.chunks(world)

    part -> parts[rank]
    for s in range(1, world):
        let source = (rank - s) % world
        parallel:
            send(part, dst=(rank + s) % world)
            recv(parts[source], src=source)
