# B02: The cure of B01: both halves in one group call.
# Source: https://github.com/NVIDIA/nccl/issues/479
# world: 2
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    parallel:
        send(x, dst=1 - rank)
        recv(y, src=1 - rank)
