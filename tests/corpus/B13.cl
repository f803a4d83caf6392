# B13: Each rank sends on one stream and communicator and receives on another; streams give no promise of independent progress.
# Source: https://github.com/NVIDIA/nccl/issues/783
# world: 2
# expect: CL201 @ 10
# mpi: CL221 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    if rank == 0:
        send(x, dst=1, group=a)
        recv(y, src=1, group=b)
    else:
        send(y, dst=0, group=b)
        recv(x, src=0, group=a)
