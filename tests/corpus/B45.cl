# B45: Ranks order collectives of two groups differently and the host waits in between.
# Source: https://github.com/meta-pytorch/torchrec/pull/4149
# world: 2
# expect: CL201 @ 9
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    if rank == 0:
        all_to_all_single(y, x, group=a)
        all_reduce(z, group=b)
    else:
        all_reduce(z, group=b)
        all_to_all_single(y, x, group=a)
