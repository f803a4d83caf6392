pattern pairwise_all_to_all(got: dtype[world, n], x: dtype[world, n], n = 256Ki, dtype = float32):
    """All-to-all in pairs: in step s, send to the rank s ahead and receive from the one s behind.

    world - 1 steps of n elements, the fewest bytes there can be: each block goes straight to where
    it belongs. In every step a rank has one partner to send to and one to receive from, so that no
    link is crowded.
    Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations
    in MPICH, IJHPCA 2005.
    """
    ensure got[s] == (old(x) @ s)[rank] for s in ranks
    preset dgx: world = 8, n = 32Mi

    x[rank] -> got[rank]
    for s in range(1, world):
        let to = (rank + s) % world
        let source = (rank - s) % world
        parallel:
            send(x[to], dst=to)
            recv(got[source], src=source)
