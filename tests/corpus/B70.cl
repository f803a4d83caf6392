# B70: Peers reduce tensors of slightly different size over gloo; the process aborts.
# Source: https://github.com/PrimeIntellect-ai/prime-diloco/issues/68
# world: 2
# expect: CL216 @ 9
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 261551):
    if rank == 0:
        all_reduce(x)
    else:
        all_reduce(x[0:260064])
