pattern main(x: float32[n], n = 1Ki, root = 0):
    """Fine by default, but one preset has a root that is no rank."""
    preset good: world = 8, root = 7
    preset late: world = 2, root = 2, n = 4M

    broadcast(x, src=root)
