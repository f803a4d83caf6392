extern forward(
    weights: read dtype[n],
    act: read dtype[t, h],
    out: write dtype[t, h],
    dtype = bfloat16,
):
    """This rank's layers on a micro-batch; the first stage embeds it, the last computes its loss."""

extern backward(
    weights: read dtype[n],
    act: read dtype[t, h],
    dout: read dtype[t, h],
    din: write dtype[t, h],
    dtype = bfloat16,
):
    """From the gradient of the stage's output to that of its input."""

extern collect(
    act: read dtype[t, h],
    dout: read dtype[t, h],
    grad: update dtype[n],
    dtype = bfloat16,
):
    """Add the gradient of this stage's weights to that of the texts before."""

extern adam(
    weights: update dtype[n],
    state: update float32[3, n],
    grad: read dtype[n],
    dtype = bfloat16,
):
    """One step of the optimizer, which keeps a copy of the weights and two moments in float32."""

pattern pipeline(
    weights: dtype[own + ends],
    grad: dtype[own + ends],
    state: float32[3, own + ends],
    x: dtype[batch, length, hidden],
    y: dtype[batch, length, hidden],
    dx: dtype[batch, length, hidden],
    layers = world,
    hidden = 64,
    length = 32,
    batch = 2 * world,
    vocab = 256,
    saved = 34,
    own = layers // world * (12 * hidden**2 + 13 * hidden),
    ends = (vocab + length) * hidden,
    dtype = bfloat16,
):
    """One step of a GPT in pipeline parallel, by 1F1B, with micro-batches of one text.

    Every rank is one stage of as many layers. Between neighbours go the activations of each text
    and their gradients. The first and the last stage both have the embeddings, whose gradients
    they sum; here every rank has room for them. A rank keeps the activations of at most
    world - rank texts, `saved` bytes per token, layer and hidden element. y and dx, what each stage
    makes of all texts, are there for the contract to speak of.
    Source: Narayanan and others, Memory-efficient pipeline-parallel DNN training, ICML 2021, and
    Efficient large-scale language model training on GPU clusters using Megatron-LM, SC 2021.
    """
    require layers % world == 0, "every stage gets as many layers"
    require world > 1, "a pipeline needs two stages"
    preset gpt_7b: world = 8, layers = 32, hidden = 4Ki, length = 2Ki, batch = 32, vocab = 50304

    let first = rank == 0
    let last = rank == world - 1
    let warm = min(world - 1 - rank, batch)  # forwards before the first backward
    let deep = layers // world * (12 * hidden + 2 * length) + (vocab if last else 0)
    group tied = [0, world - 1]
    let input(m) = x[m] if first else y[m] @ ranks.prev
    let after(m) = 1 if last else dx[m] @ ranks.next
    ensure x == old(x)
    ensure y[m] == forward(old(weights), input(m)) for m in range(batch)
    ensure dx[m] == backward(old(weights), input(m), after(m)) for m in range(batch)

    temp act: dtype[warm + 1, length, hidden]
    temp acts: uint8[warm + 1, layers // world * saved * length * hidden]
    temp dout: dtype[length, hidden]
    let slot(m) = m % (warm + 1)

    fill(grad, 0)
    for k in range(warm + batch):
        let m = k - warm       # the text that goes backward
        parallel:
            if m > 0 and not first:
                send(dx[m - 1], dst=ranks.prev)
            if k < batch and not first:
                recv(act[slot(k)], src=ranks.prev)
        if k < batch:
            if first:
                x[k] -> act[slot(k)]
            compute("forward", matmul=[length, hidden, deep], reads=weights, writes=acts[slot(k)])
            forward(weights, act[slot(k)], y[k])
        parallel:
            if k < batch and not last:
                send(y[k], dst=ranks.next)
            if m >= 0 and not last:
                recv(dout, src=ranks.next)
        if m >= 0:
            if last:
                fill(dout, 1)  # the gradient of the loss itself
            compute("backward", matmul=[length, hidden, 2 * deep], reads=[weights, acts[slot(m)]])
            backward(weights, act[slot(m)], dout, dx[m])
            collect(act[slot(m)], dout, grad)
    parallel:                  # a batch, as its recv is: NCCL keeps the two apart
        if not first:
            send(dx[batch - 1], dst=ranks.prev)
    if first or last:
        all_reduce(grad[own:], group=tied)
    adam(weights, state, grad)
