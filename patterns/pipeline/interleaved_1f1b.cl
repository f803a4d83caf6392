extern forward(act: read bfloat16[b, h], out: write bfloat16[b, h], c: int, m: int):
    """Model chunk c of this rank on micro-batch m; the last one computes the loss too."""
    cost 1ms

extern backward(
    act: read bfloat16[b, h],
    dout: read bfloat16[b, h],
    din: write bfloat16[b, h],
    c: int,
    m: int,
):
    """From the gradient of the chunk's output to that of its input."""
    cost 2ms

pattern interleaved_1f1b(x: bfloat16[micro, b, h], micro = 2 * world, v = 2, b = 4, h = 256):
    """Interleaved 1F1B: every rank has v chunks of the model, and a micro-batch goes round v times.

    Chunk c of rank r is stage c * world + r. The bubble is v times smaller than that of 1F1B, and
    v times as many messages of b h elements pay for it. Step k of a rank is one chunk of one
    micro-batch. Sends are posted beside the receives, which gloo and MPI run side by side; NCCL,
    which runs them in the order of issue, hangs.
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

    # All micro-batches have buffers of their own, to keep the text plain; warm + 1 are in use.
    temp act: bfloat16[v, micro, b, h]
    temp out: bfloat16[v, micro, b, h]
    temp din: bfloat16[v, micro, b, h]
    temp dout: bfloat16[v, micro, b, h]

    # With two ranks, activations and gradients share their channels: the tags tell them apart.
    for k in range(warm + steps):
        if k < steps:
            let c = chunk(k)
            let m = batch(k)
            if first(c):
                x[m] -> act[c, m]
            else:
                recv(act[c, m], src=ranks.prev, tag=0)
            forward(act[c, m], out[c, m], c, m)
            if not last(c):
                down[k] = async send(out[c, m], dst=ranks.next, tag=0)  # commlang: ignore[CL250] runs beside the recvs on gloo and MPI, not on NCCL
        if k >= warm:
            let c = back(k - warm)
            let m = batch(k - warm)
            if last(c):
                fill(dout[c, m], 1)  # the gradient of the loss itself
            else:
                recv(dout[c, m], src=ranks.next, tag=1)
            backward(act[c, m], dout[c, m], din[c, m], c, m)
            if not first(c):
                up[k] = async send(din[c, m], dst=ranks.prev, tag=1)
    wait(down)
    wait(up)
