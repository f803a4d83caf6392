# B74: Send-receive with one buffer for both directions.
# Source: https://github.com/llnl/Elemental/issues/146
# world: 2
# expect: CL230 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    parallel:
        send(x, dst=1 - rank)
        recv(x, src=1 - rank)
