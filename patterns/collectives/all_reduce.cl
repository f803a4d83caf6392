pattern main(x: dtype[n], n = 1Mi, op = sum, dtype = float32):
    """all_reduce: every rank ends with the sum of every rank's x.

    The workhorse of data-parallel training. Any reduce operation may stand in for sum: avg,
    product, min and max, and band, bor and bxor on integers.
    """
    ensure x == op(old(x) @ r for r in ranks)
    preset dgx: world = 8, n = 256Mi

    all_reduce(x, op=op)
