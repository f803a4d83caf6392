# S17: A leaf could leave the reduce early, the root cannot
# Source: MBI CollP2PCallMatching_Recv_Send_Reduce_nok
# world: 2
# expect: CL201 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        reduce(x, dst=0)
        send(y, dst=1)
    else:
        recv(y, src=0)
        reduce(x, dst=0)
