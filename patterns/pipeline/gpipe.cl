extern forward(act: read dtype[b, h], out: write dtype[b, h], m: int, dtype = bfloat16):
    """This rank's stage of the model on micro-batch m; the last stage computes its loss too."""
    cost 1ms

extern backward(
    act: read dtype[b, h],
    dout: read dtype[b, h],
    din: write dtype[b, h],
    m: int,
    dtype = bfloat16,
):
    """From the gradient of the stage's output to that of its input."""
    cost 2ms

pattern gpipe(
    y: dtype[micro, b, h],
    dx: dtype[micro, b, h],
    x: dtype[micro, b, h],
    micro = 8,
    b = 4,
    h = 256,
    dtype = bfloat16,
):
    """GPipe: all micro-batches forward through the stages, then all of them backward.

    Every rank is one stage of the model and keeps the inputs of all micro-batches until their
    backward. The bubble, in which it idles, is world - 1 of the micro + world - 1 turns. To each
    neighbour it sends b h elements per micro-batch: activations down, gradients up. x is read by
    rank 0 alone. y and dx are what each stage makes of every micro-batch, for the contract to speak
    of: training needs a place for one of each.
    Source: Huang and others, GPipe: efficient training of giant neural networks using pipeline
    parallelism, NeurIPS 2019.
    """
    preset gpt: world = 8, micro = 32, b = 2Ki, h = 12Ki

    let first = rank == 0
    let last = rank == world - 1
    let input(m) = x[m] if first else y[m] @ ranks.prev
    let grad(m) = 1 if last else dx[m] @ ranks.next
    ensure x == old(x)
    ensure y[m] == forward(input(m), m) for m in range(micro)
    ensure dx[m] == backward(input(m), grad(m), m) for m in range(micro)

    temp act: dtype[micro, b, h]
    temp dout: dtype[b, h]

    for m in range(micro):
        if first:
            x[m] -> act[m]
        else:
            recv(act[m], src=ranks.prev)
        forward(act[m], y[m], m)
        if not last:
            send(y[m], dst=ranks.next)

    for m in reversed(range(micro)):
        if last:
            fill(dout, 1)  # the gradient of the loss itself
        else:
            recv(dout, src=ranks.next)
        backward(act[m], dout, dx[m], m)
        if not first:
            send(dx[m], dst=ranks.prev)
