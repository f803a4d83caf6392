pattern shift(x: float32[n], y: float32[n], n = 4Ki):
    compute(3ms, reads=[x], writes=[y], label="warm up")
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
    all_reduce(y)
