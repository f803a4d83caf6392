extern forward(act: read bfloat16[b, h], out: write bfloat16[b, h], m: int):
    """This shard's part of what the stage makes of micro-batch m: the parts add up."""
    cost 1ms

extern backward(
    act: read bfloat16[b, h],
    dout: read bfloat16[b, h],
    din: write bfloat16[b, h],
    m: int,
):
    """This shard's part of the gradient of the stage's input, from that of its output."""
    cost 1ms

extern collect(
    act: read bfloat16[b, h],
    dout: read bfloat16[b, h],
    grad: update float32[n],
    m: int,
):
    """Add the gradient of this shard's weights to that of the micro-batches before."""
    cost 1ms

pattern training_step_3d(
    grad: float32[n],
    y: bfloat16[micro, b, h],
    dx: bfloat16[micro, b, h],
    x: bfloat16[micro, b, h],
    n = 256Ki,
    b = 16,
    h = 1Ki,
    micro = 4,
    stages = 2,
    shards = 2,
    replicas = world // (stages * shards),
):
    """One training step on a cube of ranks: pipeline by data by tensor parallel.

    Tensor-parallel ranks speak most often and are neighbours on the last axis; stages send one
    activation forward and its gradient back for each micro-batch; replicas meet once, at the end.
    For each micro-batch, b h elements go to either neighbour in the pipeline and, with one layer
    to a stage, into two all-reduces among the shards; n gradients are averaged at the end. x is
    read by the first stage alone. y and dx are what each stage makes of every micro-batch.
    Source: Narayanan and others, Efficient large-scale language model training on GPU clusters
    using Megatron-LM, SC 2021.
    """
    require world == stages * replicas * shards, "the ranks must fill the cube"
    mesh pp = stages, dp = replicas, tp = shards
    preset gpt_145b: world = 512, stages = 8, shards = 8, micro = 64, n = 2275M, b = 2Ki, h = 12Ki

    let first = pp.index == 0
    let last = pp.index == pp.size - 1

    let input(m) = x[m] if first else y[m] @ pp.prev
    let above(m) = 1 if last else dx[m] @ pp.next
    let collected(g, m) = collect(input(m), above(m), g, m)
    ensure x == old(x)
    ensure y[m] == sum(forward(input(m), m) @ r for r in tp) for m in range(micro)
    ensure dx[m] == sum(backward(input(m), above(m), m) @ r for r in tp) for m in range(micro)
    ensure grad == avg(fold(collected, old(grad), reversed(range(micro))) @ r for r in dp)

    temp act: bfloat16[micro, b, h]
    temp dout: bfloat16[b, h]

    for m in range(micro):
        if first:
            x[m] -> act[m]
        else:
            recv(act[m], src=pp.prev)
        forward(act[m], y[m], m)
        all_reduce(y[m], group=tp)
        if not last:
            send(y[m], dst=pp.next)
    for m in reversed(range(micro)):
        if last:
            fill(dout, 1)  # the gradient of the loss itself
        else:
            recv(dout, src=pp.next)
        backward(act[m], dout, dx[m], m)
        collect(act[m], dout, grad, m)
        all_reduce(dx[m], group=tp)
        if not first:
            send(dx[m], dst=pp.prev)
    all_reduce(grad, op=avg, group=dp)
