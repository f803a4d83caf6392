from ring_all_gather import ring_all_gather

pattern scatter_all_gather_broadcast(x: float32[n], n = 1Mi, root = 0):
    """Van de Geijn's broadcast: scatter x down a binomial tree, then gather it around a ring.

    ceil(log2(world)) + world - 1 steps. A rank receives less than 2 n elements, whatever the
    world, where a tree alone keeps its root busy with log2(world) times n.
    Source: Barnett and others, Interprocessor collective communication library, SHPCC 1994.
    """
    ensure x == old(x) @ root
    preset dgx: world = 8, n = 256Mi

    let at(v) = (v + root) % world                  # the rank v places after the root
    let parts = x.chunks(world)                          # parts[v] is for place v
    group circle = [at(v) for v in ranks]

    for k in reversed(range(log2ceil(world))):
        let d = 1 << k
        parallel for v in range(0, world - d, 2 * d):
            let far = parts[v + d:min(v + 2 * d, world)]
            far @ at(v) -> far @ at(v + d)

    temp mine: like parts[circle.index]
    parts[circle.index] -> mine
    ring_all_gather(x, mine, group=circle)
