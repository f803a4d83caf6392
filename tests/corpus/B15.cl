# B15: Interleaved pipeline on two ranks: both send an activation before they receive one.
# Source: https://github.com/pytorch/pytorch/issues/172668
# world: 2
# expect: CL201 @ 9
# mpi: CL221 @ 9
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
        send(y, dst=1)
        recv(z, src=1)
    else:
        recv(x, src=0)
        send(z, dst=0)
        recv(y, src=0)
