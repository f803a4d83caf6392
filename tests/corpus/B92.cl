# B92: Unbatched sends face each other; small payloads pass through transport buffers, large ones hang.
# Source: https://github.com/meta-pytorch/torchrec/pull/4472
# world: 2
# expect: clean
# nccl: CL250 @ 8
# nccl-eager: CL250 @ 8
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    h = async send(x, dst=1 - rank)
    k = async recv(y, src=1 - rank)
    wait(h)
    wait(k)
