# B51: One communicator used from two streams at once.
# Source: https://github.com/sgl-project/sglang/issues/31117
# world: 2
# expect: CL217 @ 12
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        h = async all_reduce(x)
        k = async all_reduce(y)
        wait(h)
        wait(k)
    else:
        k = async all_reduce(y)
        h = async all_reduce(x)
        wait(h)
        wait(k)
