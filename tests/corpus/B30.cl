# B30: One extra barrier on rank 0: barriers pair by number, so the wrong ones meet and the last one hangs.
# Source: https://github.com/alan-turing-institute/autocast/pull/386
# world: 2
# expect: CL211 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        barrier()
        barrier()
    else:
        barrier()
