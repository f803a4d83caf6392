pattern main(x: float32[n], n = 1Ki):
    for s in range(world)
        barrier()
