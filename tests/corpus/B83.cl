# B83: An all-gather of which only rank 0 uses the result.
# Source: https://github.com/sgl-project/sglang/pull/31079
# world: 4
# expect: clean
# advice: CL405 @ 9
pattern main(x: float32[n], y: float32[n * world], n = 8Ki):
    ensure y @ 0 == concat(old(x) @ r for r in ranks)
    temp whole: float32[n * world]
    all_gather_into_tensor(whole, x)
    if rank == 0:
        whole -> y
