pattern main(x: float32[8]):
    half(x, 2)

pattern half(x: float32[n], k: int):
    all_reduce(x[:k])

pattern cluster(x: float32[8]):
    require world == 1000, "made for one cluster"
    all_reduce(x)
