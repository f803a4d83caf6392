# B85: Two independent collectives on one group cannot overlap: the small one waits for the large.
# Source: https://github.com/meta-pytorch/torchrec/pull/4708
# world: 2
# expect: clean
# advice: clean
# advice-nccl: CL409 @ 10
pattern main(a: float32[n], b: float32[1], n = 64Mi):
    h = async all_reduce(a)
    # Waited for first, yet behind a: of two that are waited for in their order, none would wait.
    k = async all_reduce(b)
    wait(k)
    compute(1ms, "use", reads=b)
    wait(h)
