# B46: P2p on one communicator and all-reduce on another, launched from two threads.
# Source: https://github.com/pytorch/pytorch/issues/175145
# world: 2
# expect: clean
# nccl: CL251 @ 12
# nccl-eager: CL251 @ 12
# mpi: CL265 @ 12
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    if rank == 0:
        h = async all_reduce(z, group=a)
        parallel:
            send(x, dst=1, group=b)
            recv(y, src=1, group=b)
        wait(h)
    else:
        parallel:
            send(x, dst=0, group=b)
            recv(y, src=0, group=b)
        h = async all_reduce(z, group=a)
        wait(h)
