# S32: Ranks use different datatypes
# Source: MBI CollDataMatching_Allreduce_nok
# world: 2
# expect: CL215 @ 11
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    temp i: int32[n]
    fill(i, 1)
    if rank == 0:
        all_reduce(x)
    else:
        all_reduce(i)
