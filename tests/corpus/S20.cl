# S20: Halo exchange on a closed ring: all processes send, then receive
# Source: MBI medium-Diffusion2D
# world: 4
# expect: CL201 @ 7
# mpi: CL221 @ 7
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
    send(x, dst=ranks.prev)
    recv(z, src=ranks.next)
