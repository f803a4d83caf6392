# S11: Both receive
# Source: MBI P2PCallMatching_Recv_Recv_nok
# world: 2
# expect: CL203 @ 6
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    recv(x, src=1 - rank)
