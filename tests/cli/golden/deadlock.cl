pattern ring(x: float32[n], n = 1Mi):
    """A ring of blocking sends."""
    preset dgx: world = 8, n = 256Mi

    send(x, dst=ranks.next)
    recv(x, src=ranks.prev)
