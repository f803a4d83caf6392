# B93: One half of a message batched, the other not: the two halves use different communicators.
# Source: ProcessGroupNCCL key choice (pytorch/pytorch, pull 160342 discussion)
# world: 2
# expect: clean
# nccl: CL256 @ 9
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        parallel:
            send(x, dst=1)
    else:
        recv(x, src=0)
