# B77: AVG on gloo silently behaved as SUM in an earlier release.
# Source: https://github.com/pytorch/pytorch/issues/162338
# world: 2
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    all_reduce(x, op=avg)
