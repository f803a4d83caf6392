# B91: DETAIL mode counts p2p in the same sequence number as collectives: any pattern with uneven p2p counts is reported.
# Source: measured on torch 2.13.0+cpu
# world: 3
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
    if rank == 1:
        recv(x, src=0)
    all_reduce(y)
