# B55: Source compared in two rank spaces: the subgroup root drops its gradient.
# Source: https://github.com/pytorch/pytorch/issues/130515
# world: 2
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = [1]
    if rank in a:
        all_reduce(x, group=a)
