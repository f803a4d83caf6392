# B66: The root draws an int64 index, the others receive into int32.
# Source: https://github.com/deepspeedai/DeepSpeed/issues/7044
# world: 2
# expect: CL215 @ 12
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    temp wide: int64[1]
    temp narrow: int32[1]
    if rank == 0:
        fill(wide, 3)
        broadcast(wide, src=0)
    else:
        broadcast(narrow, src=0)
