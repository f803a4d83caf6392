# S37: Root out of range
# Source: MBI CollRootTooLarge_Bcast_nok
# world: 2
# expect: CL116 @ 6
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    broadcast(x, src=5)
