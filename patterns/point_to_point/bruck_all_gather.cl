pattern bruck_all_gather(rows: dtype[world, n], row: dtype[n], n = 16Ki, dtype = float32):
    """Bruck's all-gather: doubling for any world, with the rows turned into place at the end.

    ceil(log2(world)) steps: in step k, a rank fetches up to 2**k rows from the rank 2**k ahead.
    It receives world - 1 rows in all, each once; the price is a copy of all rows.
    Source: Bruck and others, Efficient algorithms for all-to-all communications in multiport
    message-passing systems, IEEE TPDS 1997.
    """
    ensure rows[r] == old(row) @ r for r in ranks

    temp work: like rows  # work[i] belongs to the rank i ahead

    row -> work[0]
    for k in range(log2ceil(world)):
        let have = 1 << k
        let more = min(have, world - have)
        parallel:
            send(work[:more], dst=(rank - have) % world)
            recv(work[have : have + more], src=(rank + have) % world)

    for i in ranks:
        work[i] -> rows[(rank + i) % world]
