# S12: The receive sits in a branch that is never taken
# Source: MBI P2PCallMatching_Recv_Isend_nok
# world: 2
# expect: CL202 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        h = async send(x, dst=1)
        wait(h)
    if rank == 1 and n < 0:
        recv(x, src=0)
