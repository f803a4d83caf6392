# S13: An irecv with no send
# Source: MBI P2PCallMatching_Irecv_nok
# world: 2
# expect: CL203 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        h = async recv(x, src=1)
        wait(h)
