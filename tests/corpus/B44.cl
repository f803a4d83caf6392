# B44: A debug check inside a p2p wrapper uses a collective; only the two partners call it.
# Source: https://github.com/KratosMultiphysics/Kratos/pull/3700
# world: 3
# expect: CL211 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        all_reduce(z)
        send(x, dst=1)
    if rank == 1:
        all_reduce(z)
        recv(x, src=0)
