# B48: Many communicators, one thread and stream each, no common order.
# Source: https://github.com/NVIDIA/nccl/issues/195
# world: 2
# expect: clean
# nccl: CL251 @ 12
# nccl-eager: CL251 @ 12
# mpi: CL265 @ 12
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    if rank == 0:
        h = async all_reduce(x, group=a)
        k = async all_reduce(y, group=b)
        wait(h)
        wait(k)
    else:
        k = async all_reduce(y, group=b)
        h = async all_reduce(x, group=a)
        wait(h)
        wait(k)
