pattern training_step_3d(
    grad: float32[n],
    act: bfloat16[b, h],
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
    to a stage, into two all-reduces among the shards; n gradients are averaged at the end.
    Source: Narayanan and others, Efficient large-scale language model training on GPU clusters
    using Megatron-LM, SC 2021.
    """
    require world == stages * replicas * shards, "the ranks must fill the cube"
    mesh pp = stages, dp = replicas, tp = shards
    ensure grad == grad @ r for r in dp
    ensure act == act @ r for r in tp
    preset gpt_145b: world = 512, stages = 8, shards = 8, micro = 64, n = 2275M, b = 2Ki, h = 12Ki

    let first = pp.index == 0
    let last = pp.index == pp.size - 1

    for m in range(micro):
        if not first:
            recv(act, src=pp.prev)
        compute(1ms, "forward", reads=act, writes=act)
        all_reduce(act, group=tp)
        if not last:
            send(act, dst=pp.next)
    for m in reversed(range(micro)):
        if not last:
            recv(act, src=pp.next)
        compute(2ms, "backward", reads=act, writes=[act, grad])
        all_reduce(act, group=tp)
        if not first:
            send(act, dst=pp.prev)
    all_reduce(grad, op=avg, group=dp)
