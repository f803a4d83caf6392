# B86: A receive that is not yet answerable sits in front of ready sends on the same communicator.
# Source: https://github.com/pytorch/pytorch/pull/165664
# world: 3
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        h = async send(x, dst=1)
        m = async recv(z, src=2)
        k = async send(y, dst=1)
        wait(h)
        wait(m)
        wait(k)
    if rank == 1:
        recv(x, src=0)
        send(x, dst=2)
        recv(y, src=0)
        send(y, dst=2)
    if rank == 2:
        recv(x, src=1)
        h = async send(z, dst=0)
        recv(y, src=1)
        wait(h)
