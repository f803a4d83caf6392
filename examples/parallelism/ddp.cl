extern backward(
    weights: read dtype[n],
    text: read int64[b, s],
    grad: write dtype[k],
    part: int,
    k: int,
    dtype = bfloat16,
):
    """The gradient of this rank's loss by the parameters of one bucket."""

extern adam(
    weights: update dtype[n],
    state: update float32[3, n],
    grad: read dtype[n],
    dtype = bfloat16,
):
    """One step of the optimizer, which keeps a copy of the weights and two moments in float32."""

pattern ddp(
    weights: dtype[n],
    grad: dtype[n],
    state: float32[3, n],
    text: int64[batch // world, length],
    buffer: float32[buffers],
    layers = 2,
    hidden = 64,
    length = 32,
    batch = world,
    vocab = 256,
    buffers = 0,
    bucket = min(hidden**2, 25Mi // 2),
    saved = 34,
    n = layers * (12 * hidden**2 + 13 * hidden) + (vocab + length + 2) * hidden,
    dtype = bfloat16,
):
    """One step of a GPT by torch's DistributedDataParallel, from its second step on.

    Every rank has all weights and its share of the batch, and keeps `saved` bytes of activations
    per token, layer and hidden element: 34 in a 16-bit dtype, less what attention recomputes.
    A bucket takes gradients as they become ready until it holds `bucket` elements; each matrix of a
    large model fills one, with the vectors before it. The sums overlap with the backward pass.
    `buffers` elements of the model's buffers come from rank 0 before the forward pass, unless
    forward_sync_buffers (once broadcast_buffers) is off. Gradients lie in their buckets, as with
    gradient_as_bucket_view=True; without it they take n elements more.
    Source: Li and others, PyTorch Distributed: experiences on accelerating data parallel training,
    VLDB 2020; of the activations: Korthikanti and others, Reducing activation recomputation in
    large transformer models, 2022, equation 2.
    """
    require batch % world == 0, "every rank gets as many texts"
    require bucket <= hidden**2, "each matrix must fill a bucket"
    preset gpt_7b: world = 8, layers = 32, hidden = 4Ki, length = 2Ki, batch = 32, vocab = 50304

    let block = 12 * hidden**2 + 13 * hidden
    let tokens = batch // world * length
    let cuts = [  # as gradients become ready: matrices of the MLP, of the projection, of q, k and v
        0,
        4 * hidden**2 + 3 * hidden,
        8 * hidden**2 + 7 * hidden,
        9 * hidden**2 + 10 * hidden,
        block,
    ]
    let widths = [8 * hidden, 8 * hidden, 2 * hidden + 4 * length, 6 * hidden]
    let part(i, k) = grad[i * block + cuts[k] : i * block + cuts[k + 1]]
    let rest = grad[layers * block :]  # the first norm, positions and tokens
    let alone = length * hidden >= bucket
    let ends = [0, (2 + length) * hidden, rest.numel] if alone else [0, rest.numel]
    ensure part(i, k) == avg(
        backward(old(weights), text, 4 * i + k, part(i, k).numel) @ r for r in ranks
    ) for i in range(layers) for k in range(4)
    ensure rest[ends[j] : ends[j + 1]] == avg(
        backward(old(weights), text, 4 * layers + j, ends[j + 1] - ends[j]) @ r for r in ranks
    ) for j in range(len(ends) - 1)
    ensure weights == adam(old(weights), old(state), grad)[0]
    ensure buffer == old(buffer) @ 0

    temp acts: uint8[layers, saved * tokens * hidden]

    if buffers > 0:
        broadcast(buffer, src=0)
    for i in range(layers):
        compute(
            "forward",
            matmul=[tokens, hidden, 12 * hidden + 2 * length],
            reads=weights,
            writes=acts[i],
        )
    compute("head", matmul=[tokens, hidden, 3 * vocab], reads=weights)
    for i in range(layers):
        for k in range(4):
            compute(
                "backward",
                matmul=[tokens, hidden, widths[k]],
                reads=[weights, acts[layers - 1 - i]],
            )
            backward(weights, text, part(i, k), 4 * i + k, part(i, k).numel)
            scale(part(i, k), 1 / world)
            summed[i, k] = async all_reduce(part(i, k))
    for j in range(len(ends) - 1):
        let last = rest[ends[j] : ends[j + 1]]
        backward(weights, text, last, 4 * layers + j, last.numel)
        scale(last, 1 / world)
        summed[layers, j] = async all_reduce(last)
    wait(summed)
    adam(weights, state, grad)

pattern first_step(grad: dtype[n], n = 16Ki, dtype = bfloat16):
    """DDP's first step: all gradients in one bucket, since their order is not known yet."""
    ensure grad == avg(old(grad) @ r for r in ranks)
    scale(grad, 1 / world)
    all_reduce(grad)

pattern construction(
    count: int64[1],
    counts: int64[world],
    shapes: int64[32 * layers + 12],
    state: float32[n],
    layers = 2,
    limit = 250Mi // 4,
    n = 64Ki,
):
    """What DDP sends when it is made: are the parameters alike, then those of rank 0 to all.

    `shapes` are the sizes and strides of all parameters, which each rank compares with its own.
    `state` is parameters and buffers of one dtype, in pieces of 250 MiB; torch cuts them between
    parameters, so its pieces may be larger.
    """
    ensure counts == concat(old(count) @ r for r in ranks)
    ensure shapes == old(shapes) @ 0
    ensure state == old(state) @ 0
    let pieces = (n + limit - 1) // limit
    all_gather_single(counts, count)
    broadcast(shapes, src=0)
    for piece in state.chunks(pieces):
        broadcast(piece, src=0)

pattern rebuilding(
    order: int32[12 * layers + 5],
    sizes: int32[buckets],
    layers = 2,
    buckets = 4 * layers + 1,
):
    """What DDP sends before its second step: which parameters the new buckets hold, and how many.

    Rank 0 has seen in which order gradients became ready; `order` ends with the count of buckets.
    """
    ensure order == old(order) @ 0
    ensure sizes == old(sizes) @ 0
    broadcast(order, src=0)
    broadcast(sizes, src=0)
