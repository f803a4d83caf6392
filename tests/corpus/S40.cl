# S40: Rank 0 has the barrier before the broadcast, rank 1 after it
# Source: CorrBench MisplacedCall-MPIBarrier-Deadlock-1
# world: 2
# expect: CL212 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        barrier()
        broadcast(x, src=0)
    else:
        broadcast(x, src=0)
        barrier()
