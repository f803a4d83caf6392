pattern step(x: float32[8, 256], y: float32[1Mi]):
    group heads = ranks[0:4:2]
    group node = ranks[0:2] if rank < 2 else ranks[2:4]

    for i in range(8):
        all_reduce(x[i])
    if rank in heads:
        broadcast(y, src=0, group=heads)
    broadcast(y, src=rank - rank % 2, group=node)
