from point_to_point.binomial_broadcast import binomial_broadcast

pattern hierarchical_broadcast(x: dtype[n], n = 1Mi, node = 2, root = 0, dtype = float32):
    """Broadcast for nodes of `node` ranks: x enters each node once.

    The ranks that have the root's place on their nodes pass x on among themselves, in
    ceil(log2(world / node)) steps of n elements; then each serves its own node.
    Source: Kielmann and others, MagPIe: MPI's collective communication operations for clustered
    wide area systems, PPoPP 1999.
    """
    require world % node == 0, "the ranks must fill whole nodes"
    require 0 <= root < world, "the root is one of the ranks"
    ensure x == old(x) @ root
    preset pod: world = 64, node = 8, n = 256Mi

    mesh inter = world // node, intra = node
    let place = root % node

    if intra.index == place:
        binomial_broadcast(x, root=root // node, group=inter)
    broadcast(x, src=intra[place], group=intra)
