from .zero3 import adam, backward, collect, embed, forward, loss

pattern zero2(
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
    """One step of a GPT by torch's FSDP2 with reshard_after_forward=False: ZeRO-2.

    As ZeRO-3, but weights stay whole from the forward pass of their layer to the end of the step,
    so that nothing is gathered for the backward pass. What stays sharded are gradients, once they
    are scattered, and the state of the optimizer.
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
    temp weights: dtype[layers, p]
    temp root_weights: dtype[r]
    temp whole: dtype[2, p]  # gradients, before they are scattered
    temp root_whole: dtype[r]

    all_gather_single(root_weights, root)
    embed(root_weights, text, act, tokens, hidden)
    gathered[0] = async all_gather_single(weights[0], shard[0])
    for i in range(layers):
        wait(gathered[i])
        if i + 1 < layers:
            gathered[i + 1] = async all_gather_single(weights[i + 1], shard[i + 1])
        compute(
            "forward",
            matmul=[tokens, hidden, 12 * hidden + 2 * length],
            reads=weights[i],
            writes=acts[i],
        )
        forward(weights[i], act, i)
    compute("head", matmul=[tokens, hidden, vocab], reads=root_weights)

    compute("head backward", matmul=[tokens, hidden, 2 * vocab], reads=root_weights)
    loss(root_weights, act, root_whole)
    for i in reversed(range(layers)):
        if i + 2 < layers:
            wait(scattered[i + 2])
        compute(
            "backward",
            matmul=[tokens, hidden, 24 * hidden + 4 * length],
            reads=[weights[i], acts[i]],
        )
        backward(weights[i], act, whole[i % 2], i)
        scattered[i] = async reduce_scatter_single(grad[i], whole[i % 2], op=avg)
    collect(act, text, root_whole)
    scattered[layers] = async reduce_scatter_single(root_grad, root_whole, op=avg)
    wait(scattered)
    for i in range(layers):
        adam(shard[i], state[i], grad[i])
    adam(root, root_state, root_grad)
