# S30: Ranks name different gather roots
# Source: MBI CollRootMatching_Gather_nok
# world: 2
# expect: CL213 @ 9
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        gather(x, [y, z], dst=0)
    else:
        gather(x, [y, z], dst=1)
