# B14: Two directions on two communicators; each rank issues its own direction first.
# Source: https://github.com/NVIDIA/nccl/issues/584
# world: 2
# expect: clean
# nccl: CL258 @ 11
# nccl-eager: CL251 @ 11
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    if rank == 0:
        h = async send(x, dst=1, group=a)
        k = async recv(y, src=1, group=b)
        wait(h)
        wait(k)
    else:
        h = async send(y, dst=0, group=b)
        k = async recv(x, src=0, group=a)
        wait(h)
        wait(k)
