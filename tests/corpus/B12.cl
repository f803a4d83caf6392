# B12: Three ranks: a second send and a second receive that the middle rank never answers.
# Source: https://github.com/pytorch/pytorch/issues/113281
# world: 3
# expect: CL203 @ 8, CL202 @ 14
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        recv(x, src=1)
        recv(y, src=1)
    if rank == 1:
        send(x, dst=0)
        recv(y, src=2)
    if rank == 2:
        send(x, dst=1)
        send(y, dst=1)
