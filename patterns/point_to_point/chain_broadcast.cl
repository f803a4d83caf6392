pattern chain_broadcast(x: dtype[n], n = 1Mi, root = 0, pieces = 8, dtype = float32):
    """Broadcast along a chain, in pieces: a rank passes one piece on while the next one comes in.

    world - 2 + pieces steps of n / pieces elements, and no rank sends more than n. With many
    pieces this comes close to sending x once, however long the chain: for large tensors.
    Source: Pjesivac-Grbovic and others, Performance analysis of MPI collective operations,
    Cluster Computing 2007 (there called pipeline).
    """
    require 0 <= root < world, "the root is one of the ranks"
    ensure x == old(x) @ root
    preset dgx: world = 8, n = 256Mi, pieces = 64

    let place = (rank - root) % world  # how far from the root
    let piece = x.chunks(pieces)

    for s in range(pieces + 1):
        parallel:
            if place > 0 and s < pieces:
                recv(piece[s], src=ranks.prev)
            if place < world - 1 and s > 0:
                send(piece[s - 1], dst=ranks.next)
