pattern ddp_step(grad: float32[buckets, n], buckets = 4, n = 256Ki):
    """Data-parallel training, as DistributedDataParallel does it: average the gradients.

    The backward pass finishes the last layers first. Their bucket is reduced while the next one
    is still being computed, so that only the reduction of the first bucket is left to wait for.
    By whichever algorithm, a rank sends at least 2 (world - 1) / world of its gradients.
    Source: Li and others, PyTorch Distributed: experiences on accelerating data parallel training,
    VLDB 2020.
    """
    ensure grad[b] == avg(old(grad)[b] @ r for r in ranks) for b in range(buckets)
    preset resnet50: world = 8, buckets = 4, n = 6400Ki  # 25 MiB, the default of DDP

    for b in reversed(range(buckets)):
        compute(3ms, "backward", writes=grad[b])
        reduced[b] = async all_reduce(grad[b], op=avg)
    wait(reduced)
