# B38: A reduce-scatter hook fires only on ranks whose expert was used.
# Source: https://github.com/deepspeedai/DeepSpeed/issues/4808
# world: 2
# expect: CL212 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        reduce_scatter(x[0:4], y.chunks(world))
    all_reduce(z)
