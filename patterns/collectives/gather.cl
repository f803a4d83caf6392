pattern main(whole: float32[world * n], part: float32[n], n = 256Ki, root = 0):
    """gather: the root collects every rank's part, in rank order. The reverse of scatter.

    As in torch, only the root names the list that receives the parts.
    """
    ensure whole @ root == concat(old(part) @ r for r in ranks)

    if rank == root:
        gather(part, whole.chunks(world), dst=root)
    else:
        gather(part, dst=root)
