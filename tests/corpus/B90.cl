# B90: Run-time checker compared sequence numbers that were never agreed: correct program reported.
# Source: https://github.com/pytorch/pytorch/pull/101422
# world: 3
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    broadcast(x, src=0)
    all_reduce(x)
