extern forward(weights: read bfloat16[p], act: update bfloat16[b, h], i: int):
    """Layer i; keeps for its backward what it needs."""
    cost 1ms

extern loss(act: update bfloat16[b, h]):
    """From the output of the last layer to the gradient of the loss by it."""
    cost 1ms

extern backward(
    weights: read bfloat16[p],
    dact: update bfloat16[b, h],
    grad: write bfloat16[p],
    i: int,
):
    """From the gradient of the output of layer i to those of its input and of its weights."""
    cost 2ms

pattern fsdp_step(
    grad: bfloat16[layers, p // world],
    shard: bfloat16[layers, p // world],
    act: bfloat16[b, h],
    layers = 4,
    p = 192Ki,
    b = 4,
    h = 256,
):
    """Fully sharded data-parallel training (ZeRO-3): a rank keeps 1/world of every layer.

    A layer's weights are gathered just before it is computed and dropped after it; its gradients
    are averaged and scattered. Both overlap with computing: while layer i is computed, the weights
    of the next one come in and the gradients of the one before go out. Two layers' worth of
    buffers is all that is whole at any time. For each layer a rank sends up to three times
    (world - 1) / world of p elements: half as many again as when all have all weights.
    Source: Rajbhandari and others, ZeRO: memory optimizations toward training trillion parameter
    models, SC 2020; Zhao and others, PyTorch FSDP: experiences on scaling fully sharded data
    parallel, VLDB 2023.
    """
    require p % world == 0, "shards have one length: pad the layers"
    let full(i) = concat(shard[i] @ r for r in ranks)
    let ahead(a, i) = forward(full(i), a, i)
    let back(d, i) = backward(full(i), d, i)[0]
    let behind(i) = fold(  # the gradient of what comes out of layer i
        back,
        loss(fold(ahead, old(act), range(layers))),
        reversed(range(i + 1, layers)),
    )
    ensure shard == old(shard)
    ensure act == behind(-1)
    ensure grad[i] == (
        avg(backward(full(i), behind(i), i)[1] @ r for r in ranks).chunks(world)[rank]
    ) for i in range(layers)
    preset llama_7b: world = 8, layers = 32, p = 193Mi, b = 4Ki, h = 4Ki

    temp weights: bfloat16[2, p]
    temp whole: bfloat16[2, p]  # gradients, before they are scattered

    gathered = async all_gather_single(weights[0], shard[0])
    for i in range(layers):
        wait(gathered)
        if i + 1 < layers:
            gathered = async all_gather_single(weights[(i + 1) % 2], shard[i + 1])
        forward(weights[i % 2], act, i)

    loss(act)  # from here on: gradients
    for i in reversed(range(layers)):
        wait(gathered)
        if 0 < i < layers - 1:  # the last two layers are still there
            gathered = async all_gather_single(weights[(i - 1) % 2], shard[i - 1])
        if i + 2 < layers:
            wait(scattered[i + 2])
        backward(weights[i % 2], act, whole[i % 2], i)
        scattered[i] = async reduce_scatter_single(grad[i], whole[i % 2], op=avg)
    wait(scattered)
