extern forward(act: read dtype[b, h], out: write dtype[b, h], c: int, m: int, dtype = bfloat16):
    """Model chunk c of this rank on micro-batch m; the last one computes the loss too."""
    cost 1ms

extern backward(
    act: read dtype[b, h],
    dout: read dtype[b, h],
    din: write dtype[b, h],
    c: int,
    m: int,
    dtype = bfloat16,
):
    """From the gradient of the chunk's output to that of its input."""
    cost 2ms

pattern interleaved_1f1b(
    y: dtype[v, micro, b, h],
    dx: dtype[v, micro, b, h],
    x: dtype[micro, b, h],
    micro = 2 * world,
    v = 2,
    b = 4,
    h = 256,
    dtype = bfloat16,
):
    """Interleaved 1F1B: every rank has v chunks of the model, and a micro-batch goes round v times.

    Chunk c of rank r is stage c * world + r. The bubble is v times smaller than that of 1F1B, and
    v times as many messages of b h elements pay for it. Step k of a rank is one chunk of one
    micro-batch, then an exchange of activations and one of gradients. A result is received when
    it is sent: rank 0 takes what goes round to it world - 1 steps before the chunk that needs it.
    x is read by rank 0 alone. y and dx are what each chunk makes of every micro-batch, for the
    contract to speak of: training needs a place only for what is still to be sent.
    Source: Narayanan and others, Efficient large-scale language model training on GPU clusters
    using Megatron-LM, SC 2021.
    """
    require world > 1, "a pipeline needs two ranks"
    require micro % world == 0, "micro-batches go round in groups of world"
    preset gpt: world = 8, micro = 32, v = 4, b = 2Ki, h = 12Ki

    let steps = micro * v
    let warm = min(2 * (world - 1 - rank) + (v - 1) * world, steps)  # before the first backward

    let chunk(k) = k // world % v                        # of the k-th forward
    let back(k) = v - 1 - chunk(k)                       # of the k-th backward
    let batch(k) = k // (world * v) * world + k % world  # of either
    let first(c) = rank == 0 and c == 0
    let last(c) = rank == world - 1 and c == v - 1

    let input(c, m) = x[m] if first(c) else (y @ ranks.prev)[c if rank > 0 else c - 1, m]
    let grad(c, m) = 1 if last(c) else (dx @ ranks.next)[c if rank < world - 1 else c + 1, m]
    ensure x == old(x)
    ensure y[c, m] == forward(input(c, m), c, m) for c in range(v) for m in range(micro)
    ensure dx[c, m] == backward(
        input(c, m),
        grad(c, m),
        c,
        m,
    ) for c in range(v) for m in range(micro)

    # All micro-batches have buffers of their own, to keep the text plain; warm + 1 are in use.
    temp act: dtype[v, micro, b, h]
    temp dout: dtype[v, micro, b, h]

    # Forwards reach the next rank one step later, from the last rank to rank 0 world - 1 earlier;
    # backwards likewise, the other way. With two ranks the tags tell the two apart.
    parallel:
        if rank > 0:
            recv(act[0, 0], src=ranks.prev, tag=0)
    for k in range(warm + steps):
        let j = k - warm             # the backward of this step
        if k < steps:
            let c = chunk(k)
            let m = batch(k)
            if first(c):
                x[m] -> act[c, m]
            forward(act[c, m], y[c, m], c, m)
        if j >= 0:
            let c = back(j)
            let m = batch(j)
            if last(c):
                fill(dout[c, m], 1)  # the gradient of the loss itself
            backward(act[c, m], dout[c, m], dx[c, m], c, m)
        let fwd = k + 1 if rank > 0 else k - (world - 1)          # the forward that comes in
        let bwd = j + 1 if rank < world - 1 else j - (world - 1)  # the backward
        parallel:
            if k < steps and not last(chunk(k)):
                send(y[chunk(k), batch(k)], dst=ranks.next, tag=0)
            if 0 <= fwd and fwd < steps:
                if rank > 0:
                    recv(act[chunk(fwd), batch(fwd)], src=ranks.prev, tag=0)
                elif chunk(fwd) < v - 1:
                    recv(act[chunk(fwd) + 1, batch(fwd)], src=ranks.prev, tag=0)
        parallel:
            if j >= 0 and not first(back(j)):
                send(dx[back(j), batch(j)], dst=ranks.prev, tag=1)
            if 0 <= bwd and bwd < steps:
                if rank < world - 1:
                    recv(dout[back(bwd), batch(bwd)], src=ranks.next, tag=1)
                elif back(bwd) > 0:
                    recv(dout[back(bwd) - 1, batch(bwd)], src=ranks.next, tag=1)
