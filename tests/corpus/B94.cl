# B94: The MPI habit of posting every receive before the sends, unbatched (essence also of MBI no-error-p2p-irecv-isend-loop).
# Source: https://github.com/pytorch/pytorch/issues/172668
# world: 2
# expect: clean
# nccl: CL250 @ 8
# nccl-eager: CL250 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    h = async recv(y, src=1 - rank)
    k = async send(x, dst=1 - rank)
    wait(h)
    wait(k)
