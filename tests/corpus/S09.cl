# S09: A send with no receive
# Source: MBI P2PCallMatching_Send_nok
# world: 2
# expect: CL202 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
    else:
        compute(1ms, reads=x)
