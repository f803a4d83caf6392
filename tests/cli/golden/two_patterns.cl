pattern first(x: float32[8]):
    if rank == 0:
        send(x, dst=1)

pattern second(x: float32[8]):
    if rank == 2:
        recv(x, src=3)
