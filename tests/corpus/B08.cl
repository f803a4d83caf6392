# B08: First cure tried for B07: every rank walks its peers in its own rotation, one exchange at a time.
# Source: https://github.com/pytorch/pytorch/pull/174942
# world: 3
# expect: CL201 @ 7-8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    parallel:
        send(x, dst=(rank + 1) % world)
        recv(y, src=(rank + 1) % world)
    parallel:
        send(x, dst=(rank + 2) % world)
        recv(z, src=(rank + 2) % world)
