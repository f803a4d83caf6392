# B76: Gloo reduce leaves partial sums in the non-root buffers.
# Source: https://github.com/pytorch/pytorch/issues/21480
# world: 3
# expect: CL233 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    reduce(x, dst=0)
    compute(1ms, "use", reads=x)
