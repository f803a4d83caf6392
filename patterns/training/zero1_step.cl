extern adam(weights: update float32[k], grad: read float32[k]):
    """One step of the optimizer on some of the weights. Its state never leaves this rank."""
    cost 1ms

pattern zero1_step(weights: float32[n], grad: float32[n], n = 1Mi):
    """ZeRO stage 1: all ranks have all weights, and each runs the optimizer on a part of them.

    Reduce-scatter the gradients, update the own part, all-gather the weights: the bytes of one
    all-reduce, and 1/world of the optimizer's memory. Any n will do.
    Source: Rajbhandari and others, ZeRO, SC 2020.
    """
    ensure weights == weights @ 0
    preset gpt2: world = 8, n = 1500M

    let parts = weights.chunks(world)
    temp mine: like parts[rank]

    reduce_scatter(mine, grad.chunks(world), op=avg)
    adam(parts[rank], mine)
    parts[rank] -> mine
    all_gather(parts, mine)
