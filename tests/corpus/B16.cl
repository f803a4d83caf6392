# B16: Second form after swapping receive and send on odd ranks: a forward send is still queued before the backward receive.
# Source: https://github.com/pytorch/pytorch/issues/172668
# world: 2
# expect: CL201 @ 8
# mpi: CL221 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
        recv(y, src=1)
    else:
        send(y, dst=0)
        recv(x, src=0)
