# B40: Early return on ranks with no gradients, before the norm is all-reduced.
# Source: https://github.com/NVIDIA/Model-Optimizer/pull/1621
# world: 3
# expect: CL211 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank < 2:
        all_reduce(x)
    else:
        compute(1ms, reads=x)
