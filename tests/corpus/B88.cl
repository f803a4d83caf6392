# B88: Every rank reports to rank 0, which answers all: at thousands of ranks it times out.
# Source: https://github.com/huggingface/accelerate/pull/4105
# world: 8
# expect: clean
# advice: CL408 @ 9
pattern main(x: float32[n], p: float32[n], n = 1Mi):
    temp whole: float32[world * n]
    if rank == 0:
        gather(x, whole.chunks(world), dst=0)
        compute(1ms, "choose", reads=whole, writes=p)
    else:
        gather(x, dst=0)
    broadcast(p, src=0)
