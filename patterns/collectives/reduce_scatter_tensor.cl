pattern main(row: dtype[n], x: dtype[world, n], n = 256Ki, op = sum, dtype = float32):
    """reduce_scatter_tensor: rank r ends with row r of the sum of every rank's x.

    The older name of reduce_scatter_single, which torch 2.13 recommends instead.
    """
    ensure row == op((old(x) @ r)[rank] for r in ranks)

    reduce_scatter_tensor(row, x, op=op)
