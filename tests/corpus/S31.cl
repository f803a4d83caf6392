# S31: Ranks use different operators
# Source: MBI CollOpMatching_Allreduce_nok
# world: 2
# expect: CL214 @ 9
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        all_reduce(x, op=sum)
    else:
        all_reduce(x, op=max)
