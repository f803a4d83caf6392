# B24: Parity schedule over two groups on a ring: right for even rings, broken for odd ones.
# Source: https://github.com/ByteDance-Seed/VeOmni/pull/1085
# world: 3
# expect: CL202 @ 9, CL203 @ 10
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    if rank % 2 == 0:
        h = async send(x, dst=ranks.next, group=a)
        recv(y, src=ranks.prev, group=b)
        wait(h)
    else:
        recv(y, src=ranks.prev, group=a)
        h = async send(x, dst=ranks.next, group=b)
        wait(h)
