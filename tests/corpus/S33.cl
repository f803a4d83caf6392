# S33: Float sent, int received
# Source: MBI P2PDataMatching_Send_Recv_nok
# world: 2
# expect: CL205 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    temp i: int32[n]
    if rank == 0:
        send(x, dst=1)
    else:
        recv(i, src=0)
