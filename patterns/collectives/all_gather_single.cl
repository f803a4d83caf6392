pattern main(whole: dtype[world * n], part: dtype[n], n = 256Ki, dtype = float32):
    """all_gather_single: every rank ends with every rank's part, end to end in one tensor.

    Unlike with all_gather, all parts have the same length. In exchange there is one tensor to
    fill and not a list, which is what most backends do best.
    """
    ensure whole == concat(old(part) @ r for r in ranks)

    all_gather_single(whole, part)
