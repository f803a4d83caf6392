pattern step(x: float32[4]):
    group pair = ranks[0:2]
    if rank in pair:
        all_reduce(x, group=pair)
    all_reduce(x)
