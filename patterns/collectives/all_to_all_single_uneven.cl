pattern main(
    got: float32[sum(counts[s, rank] for s in ranks)],
    x: float32[sum(counts[rank, d] for d in ranks)],
    counts: int[world, world] = [[16Ki * (1 + (s + 2 * d) % 3) for d in ranks] for s in ranks],
):
    """all_to_all_single with split sizes: counts[s, d] elements go from rank s to rank d.

    The table is known to all ranks, so commlang can tell that what each of them expects is what
    the others send. Where it is not known beforehand, exchange it first.
    """
    let start(s, d) = sum(counts[s, e] for e in range(d))  # where rank s keeps what is for d
    ensure got == concat((old(x) @ s)[start(s, rank) : start(s, rank + 1)] for s in ranks)

    let come = [counts[s, rank] for s in ranks]
    let go = [counts[rank, d] for d in ranks]
    all_to_all_single(got, x, output_split_sizes=come, input_split_sizes=go)
