extern backward(weights: read float32[n], batch: read float32[k], grad: write float32[n], b: int):
    """The gradient of this rank's loss by the weights of bucket b; later layers come first."""
    cost 3ms

pattern ddp_step(
    grad: float32[buckets, n],
    weights: float32[buckets, n],
    batch: float32[k],
    buckets = 4,
    n = 256Ki,
    k = 1Ki,
):
    """Data-parallel training, as DistributedDataParallel does it: average the gradients.

    The backward pass finishes the last layers first. Their bucket is reduced while the next one
    is still being computed, so that only the reduction of the first bucket is left to wait for.
    By whichever algorithm, a rank sends at least 2 (world - 1) / world of its gradients.
    Source: Li and others, PyTorch Distributed: experiences on accelerating data parallel training,
    VLDB 2020.
    """
    ensure weights == old(weights)
    ensure batch == old(batch)
    ensure grad[b] == avg(backward(weights[b], batch, b) @ r for r in ranks) for b in range(buckets)
    preset resnet50: world = 8, buckets = 4, n = 6400Ki  # 25 MiB, the default of DDP

    for b in reversed(range(buckets)):
        backward(weights[b], batch, grad[b], b)
        reduced[b] = async all_reduce(grad[b], op=avg)
    wait(reduced)
