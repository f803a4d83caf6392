pattern main(part: dtype[share(n, world, rank)], x: dtype[n], n = 1Mi, op = sum, dtype = float32):
    """reduce_scatter: rank r ends with part r of the sum of every rank's x.

    The parts come from a list of tensors, one for each rank, and may differ in length. Half of
    an all_reduce: the other half is an all_gather of the parts.
    """
    ensure part == op((old(x) @ r).chunks(world)[rank] for r in ranks)

    reduce_scatter(part, x.chunks(world), op=op)
