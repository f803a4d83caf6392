# B23: The first stage sends the label straight to the last stage before it feeds the pipeline.
# Source: https://github.com/tdrussell/diffusion-pipe/issues/409
# world: 3
# expect: CL201 @ 8
# mpi: CL221 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(y, dst=2)
        send(x, dst=1)
    if rank == 1:
        recv(x, src=0)
        send(x, dst=2)
    if rank == 2:
        recv(x, src=1)
        recv(y, src=0)
