extern attend(q: read bfloat16[s, h], kv: read bfloat16[2, s, h], acc: update bfloat16[s, h]):
    """Attention of q over one block of keys and values, merged into acc.

    What the softmax needs from block to block, a maximum and a sum per row, is kept by whoever
    provides this.
    """
    cost 1ms

pattern ring_attention(
    acc: bfloat16[s, h],
    q: bfloat16[s, h],
    kv: bfloat16[2, s, h],
    s = 256,
    h = 128,
):
    """Attention over a sequence that is spread over the ranks: keys and values go round.

    In each of world steps, a rank works on the block it has while it passes the block on and
    receives the next: world - 1 times 2 s h elements. No rank ever holds more than two blocks,
    however long the sequence, and the messages cost no time if a block's attention takes longer
    than its journey.
    Source: Liu and others, Ring attention with blockwise transformers for near-infinite context,
    ICLR 2024.
    """
    let merge(so_far, block) = attend(q, block, so_far)
    ensure q == old(q)
    ensure kv == old(kv)
    ensure acc == fold(merge, 0, (kv @ ((rank - k) % world) for k in range(world)))
    preset long: world = 32, s = 32Ki, h = 8Ki

    temp block: bfloat16[2, 2, s, h]

    fill(acc, 0)
    kv -> block[0]
    for step in range(world):
        let here = block[step % 2]
        let coming = block[(step + 1) % 2]
        parallel:
            attend(q, here, acc)
            if step < world - 1:
                send(here, dst=ranks.next)
                recv(coming, src=ranks.prev)
