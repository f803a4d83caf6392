pattern star_all_reduce(x: dtype[n], n = 4Ki, op = sum, dtype = float32):
    """All-reduce at one rank: rank 0 receives every x, reduces them, and sends the result to all.

    2 steps, and no fewer messages are possible: 2 (world - 1) of n elements. All of them end or
    start at rank 0, which also does all of the work: for small tensors and few ranks, where the
    number of messages is what costs.
    Source: Pješivac-Grbović and others, Performance analysis of MPI collective operations,
    Cluster Computing 2007, where it is the flat tree.
    """
    ensure x == op(old(x) @ r for r in ranks)

    temp inbox: dtype[world if rank == 0 else 0, n]

    parallel for r in ranks[1:]:
        x @ r -> inbox[r] @ 0
    if rank == 0:
        for r in ranks[1:]:
            inbox[r] -> x, op=op
    parallel for r in ranks[1:]:
        x @ 0 -> x @ r
