pattern main(x: float32[n], n = 1Ki):
    all_reduce(xx, op=sum)
    brodcast(x, src=0)
