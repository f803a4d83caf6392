# B01: Two ranks both send first and receive second, outside a group call.
# Source: https://github.com/NVIDIA/nccl/issues/479
# world: 2
# expect: CL201 @ 7
# mpi: CL221 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    send(x, dst=1 - rank)
    recv(y, src=1 - rank)
