# B79: One small broadcast for each state of a module.
# Source: https://github.com/pytorch/pytorch/pull/4978
# world: 2
# expect: clean
# advice: CL401 @ 7
pattern main(a: float32[n], b: float32[n], c: float32[n], d: float32[n], n = 256):
    broadcast(a, src=0)
    broadcast(b, src=0)
    broadcast(c, src=0)
    broadcast(d, src=0)
