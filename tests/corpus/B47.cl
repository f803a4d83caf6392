# B47: Three communicators in flight at once, same order everywhere; hardware queues fill up.
# Source: https://github.com/ROCm/rccl/issues/2191
# world: 2
# expect: clean
# nccl: CL257 @ 13
# nccl-eager: CL257 @ 13
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    group c = ranks
    h = async all_reduce(x, group=a)
    k = async all_reduce(y, group=b)
    m = async all_reduce(z, group=c)
    wait(h)
    wait(k)
    wait(m)
