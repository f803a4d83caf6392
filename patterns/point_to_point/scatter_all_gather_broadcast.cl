from ring_all_gather import ring_all_gather

pattern scatter_all_gather_broadcast(x: dtype[n], n = 1Mi, root = 0, dtype = float32):
    """Van de Geijn's broadcast: scatter x down a binomial tree, then gather it around a ring.

    ceil(log2(world)) + world - 1 steps. No rank sends as much as 2 n elements, whatever the world,
    where a tree alone keeps its root busy with ceil(log2(world)) times n. For large tensors.
    Source: Barnett and others, Interprocessor collective communication library, SHPCC 1994.
    """
    require 0 <= root < world, "the root is one of the ranks"
    ensure x == old(x) @ root
    preset dgx: world = 8, n = 256Mi

    let at(v) = (v + root) % world  # the rank v places after the root
    let parts = x.chunks(world)     # parts[v] is for place v
    group circle = [at(v) for v in ranks]

    for k in reversed(range(log2ceil(world))):
        let d = 1 << k
        parallel for v in range(0, world - d, 2 * d):
            let far = parts[v + d : min(v + 2 * d, world)]
            far @ at(v) -> far @ at(v + d)

    ring_all_gather(x, parts[circle.index], group=circle)  # in place: this part lies in x already
