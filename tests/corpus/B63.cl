# B63: Float64 sent into a float32 buffer.
# Source: https://github.com/pytorch/pytorch/issues/81545
# world: 2
# expect: CL204 @ 11, CL205 @ 11
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    temp a: float64[4]
    if rank == 0:
        fill(a, 1)
        send(a, dst=1)
    else:
        recv(x, src=0)
