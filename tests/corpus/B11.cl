# B11: An isend whose receive is never posted; NCCL already blocks while it creates the pair communicator.
# Source: https://github.com/pytorch/pytorch/issues/108378
# world: 2
# expect: CL202 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        h = async send(x, dst=1)
        wait(h)
    else:
        compute(1ms, reads=x)
