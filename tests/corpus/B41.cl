# B41: Metric with a hidden collective computed on rank zero only.
# Source: https://github.com/Lightning-AI/pytorch-lightning/issues/19783
# world: 2
# expect: CL212 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        all_gather([y, z], x)
    barrier()
