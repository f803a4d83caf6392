pattern main(x: float32[n], n = 1Mi):
    """isend and irecv: rank 0 sends x to rank 1, and both compute while it travels.

    `async` starts an operation and gives it a handle, `wait` waits for it. In between the sender
    must not write x, nor the receiver touch it.
    """
    require world >= 2, "a message needs two ranks"
    ensure x == (old(x) @ 0 if rank == 1 else old(x))

    if rank == 0:
        sent = async send(x, dst=1)
        compute(1ms, "next batch")
        wait(sent)
    elif rank == 1:
        received = async recv(x, src=0)
        compute(1ms, "next batch")
        wait(received)
