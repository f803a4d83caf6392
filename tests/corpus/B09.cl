# B09: The cure that holds: round-robin pairing, a step pairs each rank with one peer, both sides agree.
# Source: https://github.com/pytorch/pytorch/pull/174942
# world: 4
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    for step in range(1, world):
        parallel:
            send(x, dst=rank ^ step)
            recv(y, src=rank ^ step)
