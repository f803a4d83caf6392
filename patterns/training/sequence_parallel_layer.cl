pattern sequence_parallel_layer(
    y: bfloat16[s // world, h],
    full: bfloat16[s, h],
    x: bfloat16[s // world, h],
    s = 192,
    h = 384,
):
    """A tensor-parallel MLP between layers that are spread along the sequence.

    The all-reduce of tensor_parallel_layer in its two halves: gather the sequence before the
    products, reduce and scatter it after them. As many bytes, twice (world - 1) / world of s h
    elements, and all that lies between two such layers (norms, dropout, residuals) takes 1/world
    of the memory.
    Source: Korthikanti and others, Reducing activation recomputation in large transformer models,
    MLSys 2023.
    """
    require s % world == 0 and 4 * h % world == 0, "every rank gets as many rows and columns"
    ensure full == concat(old(x) @ r for r in ranks)  # kept for the backward pass
    preset gpt3: world = 8, s = 2Ki, h = 12Ki

    temp hidden: bfloat16[s, 4 * h // world]
    temp partial: bfloat16[s, h]

    all_gather_single(full, x)
    compute("up", matmul=[s, 4 * h // world, h], reads=full, writes=hidden)
    compute("down", matmul=[s, h, 4 * h // world], reads=hidden, writes=partial)
    reduce_scatter_single(y, partial, op=sum)
