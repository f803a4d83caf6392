# B24_even: The parity schedule of B24 on an even ring, for which it is right.
# Source: https://github.com/ByteDance-Seed/VeOmni/pull/1085
# world: 4
# expect: clean
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
