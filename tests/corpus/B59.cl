# B59: All-reduce of different sizes: hangs for some sizes, silently wrong for others; gloo aborts.
# Source: https://github.com/NVIDIA/nccl/issues/1394
# world: 2
# expect: CL216 @ 9
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 200):
    if rank == 0:
        all_reduce(x[0:100])
    else:
        all_reduce(x)
