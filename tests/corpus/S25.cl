# S25: Receive buffer written between irecv and wait
# Source: MBI P2PLocalConcurrency_Irecv_Send_nok
# world: 2
# expect: CL231 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
    else:
        got = async recv(x, src=0)
        scale(x, 2)
        wait(got)
