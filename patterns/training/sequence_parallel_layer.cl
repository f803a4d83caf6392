extern up(x: read bfloat16[s, h], hidden: write bfloat16[s, 4 * h // world]):
    """This rank's columns of the hidden layer, from its columns of the first matrix."""
    cost 1ms

extern down(hidden: read bfloat16[s, k], y: write bfloat16[s, k * world // 4]):
    """This rank's share of the result, from its rows of the second matrix."""
    cost 1ms

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
    ensure x == old(x)
    ensure full == concat(old(x) @ r for r in ranks)  # kept for the backward pass
    ensure y == sum(down(up(full)) @ r for r in ranks).chunks(world)[rank]
    preset gpt3: world = 8, s = 2Ki, h = 12Ki

    temp hidden: bfloat16[s, 4 * h // world]
    temp partial: bfloat16[s, h]

    all_gather_single(full, x)
    up(full, hidden)
    down(hidden, partial)
    reduce_scatter_single(y, partial, op=sum)
