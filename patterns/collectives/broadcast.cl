pattern main(x: dtype[n], n = 1Mi, root = 0, dtype = float32):
    """broadcast: every rank ends with the root's x, as when initial weights are handed out."""
    ensure x == old(x) @ root

    broadcast(x, src=root)
