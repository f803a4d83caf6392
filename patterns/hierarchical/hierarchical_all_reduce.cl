from point_to_point.ring_all_reduce import ring_all_reduce

pattern hierarchical_all_reduce(x: float32[n], n = 1Mi, node = 2):
    """All-reduce for nodes of `node` ranks: across nodes, each rank moves 1/node of the data.

    Reduce-scatter inside the node, all-reduce of the own part with the ranks of the same place on
    the other nodes, all-gather inside the node. The slow links between nodes carry what they
    must and no more; the fast ones inside carry the rest.
    """
    require world % node == 0, "the ranks must fill whole nodes"
    ensure x == sum(old(x) @ r for r in ranks)
    preset pod: world = 64, node = 8, n = 256Mi

    mesh inter = world // node, intra = node
    let parts = x.chunks(node)
    temp mine: like parts[intra.index]

    reduce_scatter(mine, parts, op=sum, group=intra)
    ring_all_reduce(mine, group=inter)
    all_gather(parts, mine, group=intra)
