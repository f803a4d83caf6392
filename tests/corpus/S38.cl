# S38: A rank outside the group calls its collective
# Source: MBI CollComNull / CollInvalidCom
# world: 3
# expect: CL118 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = [0, 1]
    all_reduce(x, group=a)
