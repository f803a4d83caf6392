# S07: Non-blocking, waits in issue order
# Source: MBI CollCorrect_Iallreduce_Iallgather
# world: 2
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    temp a: float32[2, n]
    h = async all_reduce(x)
    k = async all_gather([a[0], a[1]], y)
    wait(h)
    wait(k)
