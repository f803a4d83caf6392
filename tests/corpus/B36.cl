# B36: Sharded weights: a rank that ends generation early goes on to another collective.
# Source: https://github.com/deepspeedai/DeepSpeed/issues/8262
# world: 2
# expect: CL212 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    for token in range(3 - rank):
        all_gather([y, z], x)
    all_reduce(x)
