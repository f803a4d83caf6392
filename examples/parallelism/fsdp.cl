extern forward(weights: read dtype[p], act: update dtype[t, h], i: int, dtype = bfloat16):
    """Layer i."""

extern loss(
    weights: read dtype[p],
    act: update dtype[t, h],
    grad: write dtype[p],
    dtype = bfloat16,
):
    """From the output of the last layer to its gradient, and to that of the root's weights."""

extern backward(
    weights: read dtype[p],
    act: update dtype[t, h],
    grad: write dtype[p],
    i: int,
    dtype = bfloat16,
):
    """From the gradient of the output of layer i to those of its input and of its weights."""

extern adam(
    weights: update dtype[n],
    state: update float32[3, n],
    grad: read dtype[n],
    dtype = bfloat16,
):
    """One step of the optimizer, which keeps a copy of the weights and two moments in float32."""

pattern zero3(
    root: dtype[r // world],
    shard: dtype[layers, p // world],
    root_grad: dtype[r // world],
    grad: dtype[layers, p // world],
    root_state: float32[3, r // world],
    state: float32[layers, 3, p // world],
    act: dtype[batch // world * length, hidden],
    layers = 2,
    hidden = 64,
    length = 32,
    batch = world,
    vocab = 256,
    saved = 34,
    p = 12 * hidden**2 + 13 * hidden,
    r = (
        (vocab + world - 1) // world * world + (length + world - 1) // world * world + 2 * world
    ) // 1 * hidden,
    dtype = bfloat16,
):
    """One step of a GPT by torch's FSDP2, reshard_after_forward=True: ZeRO-3.
    """
    pass
