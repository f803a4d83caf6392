# S22: All receives posted before all sends
# Source: MBI no-error-p2p-irecv-isend-loop
# world: 3
# expect: clean
# nccl: CL258 @ 8
# nccl-eager: CL250 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    h = async recv(y, src=(rank + 1) % world)
    k = async recv(z, src=(rank + 2) % world)
    m = async send(x, dst=(rank + 1) % world)
    o = async send(x, dst=(rank + 2) % world)
    wait(h)
    wait(k)
    wait(m)
    wait(o)
