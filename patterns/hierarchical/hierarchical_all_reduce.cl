from point_to_point.ring_all_reduce import ring_all_reduce

pattern hierarchical_all_reduce(x: dtype[n], n = 1Mi, node = 2, op = sum, dtype = float32):
    """All-reduce for nodes of `node` ranks: across nodes, each rank moves 1/node of the data.

    Reduce-scatter inside the node, all-reduce of the own part with the ranks of the same place on
    the other nodes, all-gather inside the node. With m nodes, a rank sends 2 (m - 1) / m of
    n / node elements over the slow links between nodes, the least that is possible, and
    2 (node - 1) / node of n over the fast ones inside. All in place, for any n.
    Source: Cho and others, BlueConnect: decomposing all-reduce for deep learning on heterogeneous
    network hierarchy, MLSys 2019.
    """
    require world % node == 0, "the ranks must fill whole nodes"
    ensure x == op(old(x) @ r for r in ranks)
    preset pod: world = 64, node = 8, n = 256Mi

    mesh inter = world // node, intra = node
    let parts = x.chunks(node)
    let mine = parts[intra.index]

    reduce_scatter(mine, parts, op=op, group=intra)
    ring_all_reduce(mine, op=op, group=inter)
    all_gather(parts, mine, group=intra)
