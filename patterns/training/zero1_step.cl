extern adam(weights: update float32[k], grad: read float32[k]):
    """One step of the optimizer on some of the weights. Its state never leaves this rank."""
    cost 1ms

pattern zero1_step(weights: float32[n], grad: float32[n], n = 1Mi):
    """ZeRO stage 1: all ranks have all weights, and each runs the optimizer on a part of them.

    Reduce-scatter the gradients, update the own part, all-gather the weights: twice
    (world - 1) / world of n elements, the bytes of one all-reduce, and 1/world of the optimizer's
    memory. All in place, for any n.
    Source: Rajbhandari and others, ZeRO: memory optimizations toward training trillion parameter
    models, SC 2020.
    """
    let updated(r) = adam(old(weights).chunks(world)[r], grad.chunks(world)[r])  # by rank r
    ensure weights.chunks(world)[r] == updated(r) @ r for r in ranks
    ensure grad.chunks(world)[rank] == avg((old(grad) @ r).chunks(world)[rank] for r in ranks)
    preset gpt2: world = 8, n = 1558M

    let parts = weights.chunks(world)
    let grads = grad.chunks(world)

    reduce_scatter(grads[rank], grads, op=avg)
    adam(parts[rank], grads[rank])
    all_gather(parts, parts[rank])
