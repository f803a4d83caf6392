# S41: One rank skips the reduce
# Source: CorrBench MissingCall-MPIReduce-Deadlock
# world: 3
# expect: CL211 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank < 2:
        reduce(x, dst=0)
    else:
        compute(1ms, reads=x)
