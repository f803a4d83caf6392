pattern main(whole: dtype[n], part: dtype[share(n, world, rank)], n = 1Mi, dtype = float32):
    """all_gather: every rank ends with every rank's part, in rank order.

    The parts go to a list of tensors, one for each rank. They may differ in length: `chunks`
    cuts any n into world parts, and `share` is the length of one of them.
    """
    ensure whole == concat(old(part) @ r for r in ranks)

    all_gather(whole.chunks(world), part)
