# B19: The same four operations as one batch.
# Source: https://github.com/NVIDIA/Megatron-LM/issues/5100
# world: 4
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    parallel:
        if rank > 0:
            send(x, dst=rank - 1)
            recv(y, src=rank - 1)
        if rank < world - 1:
            send(x, dst=rank + 1)
            recv(z, src=rank + 1)
