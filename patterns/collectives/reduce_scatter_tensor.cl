pattern main(row: float32[n], x: float32[world, n], n = 256Ki):
    """reduce_scatter_tensor: rank r ends with row r of the sum of every rank's x.

    The older name of reduce_scatter_single, which torch 2.13 recommends instead.
    """
    ensure row == sum((old(x) @ r)[rank] for r in ranks)

    reduce_scatter_tensor(row, x, op=sum)
