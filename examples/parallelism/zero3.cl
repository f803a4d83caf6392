extern embed(
    root: read dtype[r],
    text: read int64[t],
    act: write dtype[t, h],
    t: int,
    h: int,
    dtype = bfloat16,
):
    """Look the tokens and positions up."""

extern forward(weights: read dtype[p], act: update dtype[t, h], i: int, dtype = bfloat16):
    """Layer i."""

extern loss(root: read dtype[r], act: update dtype[t, h], grad: write dtype[r], dtype = bfloat16):
    """From the output of the last layer to its gradient, and to that of the head."""

extern backward(
    weights: read dtype[p],
    act: update dtype[t, h],
    grad: write dtype[p],
    i: int,
    dtype = bfloat16,
):
    """From the gradient of the output of layer i to those of its input and of its weights."""

extern collect(act: read dtype[t, h], text: read int64[t], grad: update dtype[r], dtype = bfloat16):
    """Add the gradient of the embeddings to that of the head, which has the same weights."""

extern adam(
    weights: update dtype[n],
    state: update float32[3, n],
    grad: read dtype[n],
    dtype = bfloat16,
):
    """One step of the optimizer, which keeps a copy of the weights and two moments in float32."""

pattern zero3(
    shard: dtype[layers, p // world],
    grad: dtype[layers, p // world],
    state: float32[layers, 3, p // world],
    root: dtype[r // world],
    root_grad: dtype[r // world],
    root_state: float32[3, r // world],
    text: int64[batch // world * length],
    layers = 2,
    hidden = 64,
    length = 32,
    batch = world,
    vocab = 256,
    saved = 34,
    p = 12 * hidden**2 + 13 * hidden,
    r = (
        (vocab + world - 1) // world + (length + world - 1) // world
    ) * world * hidden + 2 * hidden,
    dtype = bfloat16,
):
    """One step of a GPT by torch's FSDP2 with reshard_after_forward=True: ZeRO-3.

    A rank keeps 1/world of each layer's weights, gradients and optimizer state, and of the root's,
    which are the embeddings and the last norm. What is whole is there when it is computed with: the
    weights of the next layer come in, and the gradients of the layer before go out, behind the
    computation of this one. Rows of embeddings are padded to a multiple of world.
    Source: Rajbhandari and others, ZeRO: memory optimizations toward training trillion parameter
    models, SC 2020; of `saved`, bytes of activations per token, layer and hidden element:
    Korthikanti and others, Reducing activation recomputation in large transformer models, 2022.
    """
    require batch % world == 0, "every rank gets as many texts"
    require hidden % world == 0, "every rank gets as many rows of each matrix"
    preset gpt_7b: world = 8, layers = 32, hidden = 4Ki, length = 2Ki, batch = 32, vocab = 50304

    let tokens = batch // world * length
    let full(i) = concat(old(shard)[i] @ r for r in ranks)
    let ahead(a, i) = forward(full(i), a, i)
    let back(d, i) = backward(full(i), d, i)[0]
    let start(weights) = embed(weights, text, tokens, hidden)
    let end(weights) = loss(weights, fold(ahead, start(weights), range(layers)))
    let lost(k) = end(concat(old(root) @ r for r in ranks))[k]
    let behind(i) = fold(back, lost(0), reversed(range(i + 1, layers)))  # comes out of layer i
    ensure grad[i] == (
        avg(backward(full(i), behind(i), i)[1] @ r for r in ranks).chunks(world)[rank]
    ) for i in range(layers)
    ensure root_grad == (
        avg(collect(behind(-1), text, lost(1)) @ r for r in ranks).chunks(world)[rank]
    )
    ensure shard[i] == adam(old(shard)[i], old(state)[i], grad[i])[0] for i in range(layers)
    ensure root == adam(old(root), old(root_state), root_grad)[0]

    temp act: dtype[tokens, hidden]
    temp acts: uint8[layers, saved * tokens * hidden]
    temp weights: dtype[2, p]
    temp root_weights: dtype[r]
    temp whole: dtype[2, p]  # gradients, before they are scattered
    temp root_whole: dtype[r]

    all_gather_single(root_weights, root)
    embed(root_weights, text, act, tokens, hidden)
    gathered[0] = async all_gather_single(weights[0], shard[0])
    for i in range(layers):
        wait(gathered[i])
        if i + 1 < layers:
            gathered[i + 1] = async all_gather_single(weights[(i + 1) % 2], shard[i + 1])
        compute(
            "forward",
            matmul=[tokens, hidden, 12 * hidden + 2 * length],
            reads=weights[i % 2],
            writes=acts[i],
        )
        forward(weights[i % 2], act, i)
    compute("head", matmul=[tokens, hidden, vocab], reads=root_weights)

    all_gather_single(root_weights, root)
    again[layers - 1] = async all_gather_single(weights[(layers - 1) % 2], shard[layers - 1])
    compute("head backward", matmul=[tokens, hidden, 2 * vocab], reads=root_weights)
    loss(root_weights, act, root_whole)
    for i in reversed(range(layers)):
        wait(again[i])
        if i > 0:
            again[i - 1] = async all_gather_single(weights[(i - 1) % 2], shard[i - 1])
        if i + 2 < layers:
            wait(scattered[i + 2])
        compute(
            "backward",
            matmul=[tokens, hidden, 24 * hidden + 4 * length],
            reads=[weights[i % 2], acts[i]],
        )
        backward(weights[i % 2], act, whole[i % 2], i)
        scattered[i] = async reduce_scatter_single(grad[i], whole[i % 2], op=avg)
    collect(act, text, root_whole)
    scattered[layers] = async reduce_scatter_single(root_grad, root_whole, op=avg)
    wait(scattered)
    for i in range(layers):
        adam(shard[i], state[i], grad[i])
    adam(root, root_state, root_grad)
