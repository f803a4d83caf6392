# S04: All-gather against gather
# Source: MBI CollCallOrder_Allgather_Gather_nok
# world: 2
# expect: CL212 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        all_gather([y, z], x)
        gather(x, [y, z], dst=0)
    else:
        gather(x, dst=0)
        all_gather([y, z], x)
