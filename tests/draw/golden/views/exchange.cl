pattern exchange(x: float32[n], y: float32[n], n = 1Ki):
    if rank == 0:
        compute(1ms, label="</title> \ <b> # %% `x`")
    for s in range(3):
        parallel:
            send(x, dst=ranks.next)
            recv(y, src=ranks.prev)
        y -> x, op=sum
    work = async all_reduce(x)
    broadcast(y, src=1)
    wait(work)
