pattern halving_doubling_all_reduce(x: dtype[n], n = 1Mi, op = sum, dtype = float32):
    """Rabenseifner's all-reduce: reduce-scatter by halving, then all-gather by doubling.

    2 log2(world) steps, and as few bytes as around a ring: 2 (world - 1) / world of n for each
    rank. Halving needs a power of two, so the ranks beyond one first add their x to a neighbour's
    and are given the result at the end: two more steps, of n elements.
    Source: Rabenseifner, Optimization of collective reduction operations, ICCS 2004.
    """
    ensure x == op(old(x) @ r for r in ranks)
    preset dgx: world = 8, n = 256Mi

    let extra = world - (1 << log2(world))
    let folded = range(0, 2 * extra, 2)  # each of these stands in for the next rank
    group core = [r for r in ranks if r >= 2 * extra or r % 2 == 0]

    parallel for r in folded:
        x @ (r + 1) -> x @ r, op=op
    if rank in core:
        halve_and_double(x, op=op, group=core)
    parallel for r in folded:
        x @ r -> x @ (r + 1)

pattern halve_and_double(x: dtype[n], n = 1Mi, op = sum, dtype = float32):
    """The core of it, in place, for a power of two."""
    require world == 1 << log2(world), "every rank needs a partner in each step: a power of two"
    ensure x == op(old(x) @ r for r in ranks)

    let parts = x.chunks(world)
    let block(r, d) = parts[r // d * d : r // d * d + d]  # the d parts that rank r's group keeps

    for k in reversed(range(log2(world))):
        let d = 1 << k
        let partner = rank ^ d
        temp inbox: like block(rank, d)
        parallel:
            send(block(partner, d), dst=partner)
            recv(inbox, src=partner)
        inbox -> block(rank, d), op=op

    for k in range(log2(world)):
        let d = 1 << k
        let partner = rank ^ d
        parallel:
            send(block(rank, d), dst=partner)
            recv(block(partner, d), src=partner)
