pattern main(x: float32[n], n = 1Mi, root = 0):
    """broadcast: every rank ends with the root's x, as when initial weights are handed out."""
    ensure x == old(x) @ root

    broadcast(x, src=root)
