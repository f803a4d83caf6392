pattern gather_broadcast_all_reduce(x: dtype[n], n = 4Ki, op = sum, dtype = float32):
    """All-reduce of a gather and a broadcast: rank 0 reduces what it has gathered.

    The backend's own collectives move the data, in 2 steps. Rank 0 receives and reduces
    world - 1 times n elements: for small tensors, on backends whose gather and broadcast take
    fewer messages than their all_reduce, as gloo's do.
    """
    ensure x == op(old(x) @ r for r in ranks)

    if rank == 0:
        temp rows: dtype[world, n]
        gather(x, rows.chunks(world), dst=0)
        for r in ranks[1:]:
            rows[r] -> x, op=op
    else:
        gather(x, dst=0)
    broadcast(x, src=0)
