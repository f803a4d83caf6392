pattern step(x: float32[4], y: float32[4]):
    group one = ranks[0:2]
    group two = ranks[0:2]
    if rank < 2:
        all_reduce(x, group=one)
        all_reduce(y, group=two)
    barrier()
