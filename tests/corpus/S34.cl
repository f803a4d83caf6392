# S34: Tags differ
# Source: MBI P2PTagMatching_Send_Recv_nok
# world: 2
# expect: CL202 @ 9, CL203 @ 11
# nccl: clean
# nccl-eager: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1, tag=1)
    else:
        recv(x, src=0, tag=2)
