pattern bruck_all_to_all(got: float32[world, n], x: float32[world, n], n = 1Ki):
    """Bruck's all-to-all: a block that has i ranks to go hops 1, 2, 4, … as the bits of i say.

    ceil(log2(world)) steps of about half of all blocks: more bytes than in pairs, far fewer
    messages. For small blocks.
    Source: Bruck and others, Efficient algorithms for all-to-all communications in multiport
    message-passing systems, IEEE TPDS 1997.
    """
    ensure got[s] == (old(x) @ s)[rank] for s in ranks

    temp work: float32[world, n]
    for i in ranks:
        x[(rank + i) % world] -> work[i]                 # work[i] has i ranks to go

    for k in range(log2ceil(world)):
        let hop = 1 << k
        let due = [i for i in ranks if i & hop != 0]
        temp outbox: float32[len(due), n]
        temp inbox: like outbox
        for j, i in enumerate(due):
            work[i] -> outbox[j]
        parallel:
            send(outbox, dst=(rank + hop) % world)
            recv(inbox, src=(rank - hop) % world)
        for j, i in enumerate(due):
            inbox[j] -> work[i]

    for i in ranks:
        work[i] -> got[(rank - i) % world]               # it came from i ranks behind
