# S29: Ranks name different roots
# Source: MBI CollRootMatching_Bcast_nok
# world: 2
# expect: CL213 @ 9
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        broadcast(x, src=0)
    else:
        broadcast(x, src=1)
