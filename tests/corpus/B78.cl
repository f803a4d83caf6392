# B78: A gradient is scaled for one group and reduced over another: the mean is of too few ranks.
# Source: https://github.com/NVIDIA/Megatron-LM/issues/906
# world: 4
# expect: CL240 @ 7
pattern main(g: float32[n], n = 8):
    mesh dp = 2, tp = 2
    ensure g == avg(old(g) @ r for r in dp)
    scale(g, 1 / world)
    all_reduce(g, group=dp)
