# B82: An all-reduce whose result is at once cut to the own chunk.
# Source: https://github.com/vllm-project/vllm/pull/47006
# world: 2
# expect: clean
# advice: CL404 @ 9
pattern main(x: float32[n], y: float32[share(n, world, rank)], n = 8Ki):
    temp total: like x
    x -> total
    all_reduce(total)
    total.chunks(world)[rank] -> y
