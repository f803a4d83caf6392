pattern bruck_all_to_all(got: dtype[world, n], x: dtype[world, n], n = 1Ki, dtype = float32):
    """Bruck's all-to-all: a block that has i ranks to go hops 1, 2, 4, … as the bits of i say.

    ceil(log2(world)) steps, in each of which a rank sends about half of its world blocks: more
    bytes than in pairs, far fewer messages. For small blocks.
    Source: Bruck and others, Efficient algorithms for all-to-all communications in multiport
    message-passing systems, IEEE TPDS 1997.
    """
    ensure got[s] == (old(x) @ s)[rank] for s in ranks

    temp work: like x  # work[i] has i ranks to go
    for i in ranks:
        x[(rank + i) % world] -> work[i]

    for k in range(log2ceil(world)):
        let hop = 1 << k
        let due = [i for i in ranks if i & hop != 0]
        temp outbox: dtype[len(due), n]
        temp inbox: like outbox
        for j, i in enumerate(due):
            work[i] -> outbox[j]
        parallel:
            send(outbox, dst=(rank + hop) % world)
            recv(inbox, src=(rank - hop) % world)
        for j, i in enumerate(due):
            inbox[j] -> work[i]

    for i in ranks:
        work[i] -> got[(rank - i) % world]  # it came from i ranks behind
