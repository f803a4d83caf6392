# S35: Ranks use different communicators
# Source: MBI CollComMatching_Allreduce_nok
# world: 2
# expect: CL211 @ 9, CL211 @ 11
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    if rank == 0:
        all_reduce(x, group=a)
    else:
        all_reduce(x, group=b)
