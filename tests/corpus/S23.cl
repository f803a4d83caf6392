# S23: Receive from anyone, then rely on the order
# Source: MBI P2PMessageRace_Recv_Send_nok
# world: 3
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        recv(x, src=1)
        recv(y, src=2)
    else:
        send(x, dst=0)
