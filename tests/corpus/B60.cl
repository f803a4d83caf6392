# B60: Send and receive of different size: a smaller receive passes, a larger one hangs.
# Source: https://github.com/NVIDIA/nccl/issues/1938
# world: 2
# expect: CL204 @ 9
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
    else:
        recv(y[0:4], src=0)
