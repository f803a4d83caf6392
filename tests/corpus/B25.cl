# B25: The next stage expects one gradient per floating tensor, the sender sends only one.
# Source: https://github.com/deepspeedai/DeepSpeed/pull/5518
# world: 2
# expect: CL203 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        recv(x, src=1)
        recv(y, src=1)
    else:
        send(x, dst=0)
