# B10: Lists of unequal length in a batch: one side waits for a message nobody sends.
# Source: https://github.com/NVIDIA/nccl/issues/2130
# world: 2
# expect: CL203 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        parallel:
            send(x, dst=1)
            send(y, dst=1)
            recv(z, src=1)
    else:
        parallel:
            recv(x, src=0)
            recv(y, src=0)
    barrier()
