# S36: Destination out of range
# Source: MBI P2PInvalidDest_Send_Recv_nok
# world: 2
# expect: CL116 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=7)
