pattern main(part: float32[n], whole: float32[world * n], n = 256Ki, root = 0):
    """scatter: the root cuts its tensor into one part for each rank and hands them out.

    As in torch, only the root names the list of parts.
    """
    ensure part == (old(whole) @ root).chunks(world)[rank]

    if rank == root:
        scatter(part, whole.chunks(world), src=root)
    else:
        scatter(part, src=root)
