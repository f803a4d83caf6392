# B04: Interleaved isend/irecv on one NCCL communicator: the stream runs them in issue order, so two receives face each other.
# Source: https://github.com/pytorch/pytorch/issues/109401
# world: 2
# expect: clean
# nccl: CL250 @ 11
# nccl-eager: CL250 @ 11
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        h0 = async send(x, dst=1)
        wait(h0)
        h1 = async recv(y, src=1)
        h2 = async send(x, dst=1)
        h3 = async recv(z, src=1)
        wait(h1)
        wait(h2)
        wait(h3)
    else:
        h0 = async recv(x, src=0)
        wait(h0)
        h1 = async recv(z, src=0)
        h2 = async send(y, dst=0)
        h3 = async send(x, dst=0)
        wait(h1)
        wait(h2)
        wait(h3)
