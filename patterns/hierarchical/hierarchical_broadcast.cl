from point_to_point.binomial_broadcast import binomial_broadcast

pattern hierarchical_broadcast(x: float32[n], n = 1Mi, node = 2):
    """Broadcast from rank 0 for nodes of `node` ranks: x enters each node once.

    The first ranks of the nodes pass x on among themselves; each then serves its own node.
    """
    require world % node == 0, "the ranks must fill whole nodes"
    ensure x == old(x) @ 0
    preset pod: world = 64, node = 8, n = 256Mi

    mesh inter = world // node, intra = node
    if intra.index == 0:
        binomial_broadcast(x, group=inter)
    broadcast(x, src=intra[0], group=intra)
