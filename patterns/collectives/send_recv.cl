pattern main(x: float32[n], n = 1Mi):
    """send and recv: rank 0 sends x to rank 1.

    Both block: a send may last until its receive has started. The same message in one line, seen
    from above: `x @ 0 -> x @ 1`.
    """
    require world >= 2, "a message needs two ranks"
    ensure x == (old(x) @ 0 if rank == 1 else old(x))

    if rank == 0:
        send(x, dst=1)
    elif rank == 1:
        recv(x, src=0)
