# B05: Skip connection: the last stage batches its receives from both producers; the middle stage can only send after it has received.
# Source: https://github.com/pytorch/PiPPy/issues/969
# world: 3
# expect: clean
# nccl: CL252 @ 14
# nccl-eager: CL252 @ 14
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        parallel:
            send(x, dst=1)
            send(y, dst=2)
    if rank == 1:
        parallel:
            recv(x, src=0)
        parallel:
            send(x, dst=2)
    if rank == 2:
        parallel:
            recv(y, src=0)
            recv(x, src=1)
