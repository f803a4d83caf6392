extern forward(x: update float32[n], i: int):
    cost 1ms

pattern step(x: float32[n], y: float32[n], n = 8):
    for i in range(2):
        forward(x, i)
    if rank == 0:
        compute(1ms, label="only here")
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
    work = async all_reduce(x)
    compute(3ms, reads=[y], label="</title> <b> & ' ]]> ; # %% $x")
    wait(work)
