# B18: Fixed order send-prev, recv-prev, send-next, recv-next on every middle stage, not grouped.
# Source: https://github.com/NVIDIA/Megatron-LM/issues/5100
# world: 4
# expect: CL201 @ 8
# mpi: CL221 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
        recv(y, src=1)
    elif rank == world - 1:
        send(x, dst=rank - 1)
        recv(y, src=rank - 1)
    else:
        send(x, dst=rank - 1)
        recv(y, src=rank - 1)
        send(x, dst=rank + 1)
        recv(z, src=rank + 1)
