# B54: A group-local rank passed where a global source rank is expected.
# Source: https://github.com/meta-pytorch/torchrec/pull/4601
# world: 3
# expect: CL116 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = [1, 2]
    if rank in a:
        broadcast(x, src=0, group=a)
