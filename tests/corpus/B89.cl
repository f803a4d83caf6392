# B89: A barrier next to an all-reduce.
# Source: https://github.com/pyg-team/pytorch_geometric/pull/6913
# world: 2
# expect: clean
# advice: CL407 @ 7
pattern main(l: float32[n], n = 8):
    barrier()
    all_reduce(l)
