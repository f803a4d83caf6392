# B31: A loss is reduced to rank 0 only, yet every rank decides on it; ranks take different branches.
# Source: https://github.com/pytorch/pytorch/issues/77562
# world: 2
# expect: CL212 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    reduce(x, dst=0)
    if rank == 0:
        all_gather([y, z], x)
    else:
        barrier()
