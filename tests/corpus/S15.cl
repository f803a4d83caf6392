# S15: Non-blocking p2p waited before the collective on one side only
# Source: MBI CollP2PCallMatching_Irecv_Isend_Allreduce_nok
# world: 2
# expect: CL201 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        all_reduce(x)
        h = async send(y, dst=1)
        wait(h)
    else:
        h = async recv(y, src=0)
        wait(h)
        all_reduce(x)
