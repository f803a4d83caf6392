pattern pairwise_all_gather(
    whole: dtype[n],
    part: dtype[share(n, world, rank)],
    n = 1Mi,
    dtype = float32,
):
    """All-gather in pairs: every rank sends its part to each other, one after another.

    world - 1 steps of n / world elements. As many as around the ring, but nobody forwards: a slow
    rank delays no part but its own. The partners are those of pairwise_all_to_all.
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
