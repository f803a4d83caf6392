# B65: Broadcast of float32 into int64 buffers.
# Source: https://github.com/pytorch/pytorch/issues/91535
# world: 2
# expect: CL215 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    temp i: int64[2]
    if rank == 0:
        broadcast(x[0:4], src=0)
    else:
        broadcast(i, src=0)
