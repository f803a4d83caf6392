# B32: Ranks have different numbers of batches.
# Source: https://github.com/pytorch/pytorch/issues/38174
# world: 2
# expect: CL211 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    for batch in range(3 - rank):
        all_reduce(x)
