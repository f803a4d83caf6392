# B75: All-gather into a list that holds one tensor twice.
# Source: https://github.com/pytorch/pytorch/issues/18689
# world: 2
# expect: CL234 @ 6
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    all_gather([y, y], x)
