extern experts(x: update bfloat16[tokens, h]):
    """This rank's experts, applied to the tokens that were routed here."""
    cost 1ms

pattern moe(
    y: bfloat16[sum(counts[s, rank] for s in ranks), h],
    x: bfloat16[sum(counts[rank, d] for d in ranks), h],
    counts: int[world, world] = [[16 * (1 + (s + 2 * d) % 3) for d in ranks] for s in ranks],
    h = 256,
):
    """A layer of a mixture of experts: tokens travel to their experts and come back.

    counts[s, d] of rank s's tokens go to the experts of rank d; they lie in x in the order of d.
    y is what the experts of a rank make of the tokens that come to it. Twice, a rank sends its
    tokens but for those that stay: at best (world - 1) / world of x.
    Source: Lepikhin and others, GShard: scaling giant models with conditional computation and
    automatic sharding, ICLR 2021.
    """
    let start(s, d) = sum(counts[s, e] for e in range(d))  # where rank s keeps its tokens for d
    let place(s, d) = sum(counts[e, d] for e in range(s))  # and rank d those of s
    ensure y == experts(concat((old(x) @ s)[start(s, rank) : start(s, rank + 1)] for s in ranks))
    ensure x == concat((y @ d)[place(rank, d) : place(rank + 1, d)] for d in ranks)
    preset deepseek_v3: world = 64, h = 7Ki

    let back = [[counts[d, s] for d in ranks] for s in ranks]

    route(y, x, counts)
    experts(y)
    route(x, y, back)

pattern route(
    y: dtype[sum(counts[s, rank] for s in ranks), h],
    x: dtype[sum(counts[rank, d] for d in ranks), h],
    counts: int[world, world] = [[16 * (1 + (s + 2 * d) % 3) for d in ranks] for s in ranks],
    h = 256,
    dtype = bfloat16,
):
    """Send counts[s, d] rows from each rank s to each rank d, where they lie in the order of s."""
    let start(s, d) = sum(counts[s, e] for e in range(d))  # where rank s keeps the rows for d
    ensure y == concat((old(x) @ s)[start(s, rank) : start(s, rank + 1)] for s in ranks)

    let come = [counts[s, rank] for s in ranks]
    let go = [counts[rank, d] for d in ranks]
    all_to_all_single(y, x, output_split_sizes=come, input_split_sizes=go)
