pattern main(part: float32[n], x: float32[world * n], n = 256Ki):
    """reduce_scatter_single: rank r ends with part r of the sum of every rank's x.

    All parts have the same length and lie end to end in one tensor. Sharded training reduces its
    gradients this way: a rank needs only those of the parameters it owns.
    """
    ensure part == sum((old(x) @ r).chunks(world)[rank] for r in ranks)

    reduce_scatter_single(part, x, op=sum)
