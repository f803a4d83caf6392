pattern main(rows: dtype[world, n], row: dtype[n], n = 256Ki, dtype = float32):
    """all_gather_into_tensor: every rank ends with every rank's row, stacked in rank order.

    The older name of all_gather_single, which torch 2.13 recommends instead.
    """
    ensure rows[r] == old(row) @ r for r in ranks

    all_gather_into_tensor(rows, row)
