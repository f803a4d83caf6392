pattern step(x: float32[4]):
    all_reduce(x)
    if rank == 2:
        send(x, dst=3)
    if rank == 3:
        recv(x, src=2)
    all_reduce(x)
