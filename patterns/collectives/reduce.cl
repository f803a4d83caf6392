pattern main(x: dtype[n], n = 1Mi, root = 0, op = sum, dtype = float32):
    """reduce: one rank ends with the sum of every rank's x.

    Only the root's x is promised: on the way there, the others' may be overwritten with parts of
    the sum, and on gloo they are.
    """
    ensure x @ root == op(old(x) @ r for r in ranks)

    reduce(x, dst=root, op=op)
