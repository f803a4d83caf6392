# B84: A gather into a list that is one flat buffer already: extra copies, 4.6 times slower.
# Source: https://github.com/pytorch/pytorch/pull/33924
# world: 2
# expect: clean
# advice: CL406 @ 7
pattern main(x: float32[n], o: float32[n * world], n = 8Ki):
    all_gather(o.chunks(world), x)
