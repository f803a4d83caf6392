pattern main(part: dtype[n], x: dtype[world * n], n = 256Ki, op = sum, dtype = float32):
    """reduce_scatter_single: rank r ends with part r of the sum of every rank's x.

    All parts have the same length and lie end to end in one tensor. Sharded training reduces its
    gradients this way: a rank needs only those of the parameters it owns.
    """
    ensure part == op((old(x) @ r).chunks(world)[rank] for r in ranks)

    reduce_scatter_single(part, x, op=op)
