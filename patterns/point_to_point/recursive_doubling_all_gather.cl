pattern recursive_doubling_all_gather(
    whole: dtype[n],
    part: dtype[share(n, world, rank)],
    n = 1Mi,
    dtype = float32,
):
    """All-gather by doubling: pairs swap all they hold, then pairs of pairs, and so on.

    log2(world) steps of 1, 2, 4, … parts of n / world elements: as many bytes as around the ring,
    in far fewer steps. Here for a power of two; bruck_all_gather takes any world.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    require world == 1 << log2(world), "every rank needs a partner in each step: a power of two"
    ensure whole == concat(old(part) @ r for r in ranks)

    let parts = whole.chunks(world)
    let block(r, d) = parts[r // d * d : r // d * d + d]  # the d parts that rank r's group holds

    part -> parts[rank]
    for k in range(log2(world)):
        let d = 1 << k
        let partner = rank ^ d
        parallel:
            send(block(rank, d), dst=partner)
            recv(block(partner, d), src=partner)
