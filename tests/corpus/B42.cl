# B42: Ranks submit the same reductions under different names, so in different order.
# Source: https://github.com/horovod/horovod/issues/100
# world: 2
# expect: CL217 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        all_reduce(x)
        all_reduce(y)
    else:
        all_reduce(y)
        all_reduce(x)
