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

pattern one_f_one_b(
    y: dtype[micro, b, h],
    dx: dtype[micro, b, h],
    x: dtype[micro, b, h],
    micro = 8,
    b = 4,
    h = 256,
    dtype = bfloat16,
):
    """1F1B: after a warm-up, every rank does one forward, one backward, in turn.

    The bubble and the bytes are those of GPipe, but a backward comes as soon as it can, so that a
    rank keeps the inputs of at most world - rank micro-batches. Between neighbours, an activation
    on its way down crosses a gradient on its way up: only in one `parallel:` do they not wait for
    each other. x is read by rank 0 alone. y and dx are what each stage makes of every micro-batch,
    for the contract to speak of: training needs a place for one of each.
    Source: Narayanan and others, Memory-efficient pipeline-parallel DNN training, ICML 2021.
    """
    preset gpt: world = 8, micro = 32, b = 2Ki, h = 12Ki

    let first = rank == 0
    let last = rank == world - 1
    let warm = min(world - 1 - rank, micro)  # forwards before the first backward
    let input(m) = x[m] if first else y[m] @ ranks.prev
    let grad(m) = 1 if last else dx[m] @ ranks.next
    ensure x == old(x)
    ensure y[m] == forward(input(m), m) for m in range(micro)
    ensure dx[m] == backward(input(m), grad(m), m) for m in range(micro)

    temp act: dtype[warm + 1, b, h]
    temp dout: dtype[b, h]
    let slot(m) = act[m % (warm + 1)]

    for k in range(warm + micro):
        let m = k - warm       # the micro-batch that goes backward
        parallel:
            if m > 0 and not first:
                send(dx[m - 1], dst=ranks.prev)
            if k < micro and not first:
                recv(slot(k), src=ranks.prev)
        if k < micro:
            if first:
                x[k] -> slot(k)
            forward(slot(k), y[k], k)
        parallel:
            if k < micro and not last:
                send(y[k], dst=ranks.next)
            if m >= 0 and not last:
                recv(dout, src=ranks.next)
        if m >= 0:
            if last:
                fill(dout, 1)  # the gradient of the loss itself
            backward(slot(m), dout, dx[m], m)
    parallel:                  # a batch, as its recv is: NCCL keeps the two apart
        if not first:
            send(dx[micro - 1], dst=ranks.prev)
