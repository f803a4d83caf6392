# B56: Object scatter checks the root in group ranks but takes it in global ranks.
# Source: https://github.com/pytorch/pytorch/issues/74602
# world: 3
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = [1, 2]
    if rank == 1:
        scatter(x[0:4], y.chunks(a.size), src=1, group=a)
    if rank == 2:
        scatter(x[0:4], src=1, group=a)
