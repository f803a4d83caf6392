# B71: All-reduce started asynchronously, the buffer divided before the wait.
# Source: https://github.com/OpenNMT/OpenNMT-py/issues/2295
# world: 2
# expect: CL231 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    work = async all_reduce(x)
    scale(x, 1 / world)
    wait(work)
