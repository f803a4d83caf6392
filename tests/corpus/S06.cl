# S06: Same order everywhere
# Source: MBI CollCorrect_Allreduce_Bcast
# world: 2
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    all_reduce(x)
    broadcast(y, src=0)
