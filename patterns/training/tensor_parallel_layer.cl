extern up(x: read bfloat16[s, h], hidden: write bfloat16[s, 4 * h // world]):
    """This rank's columns of the hidden layer, from its columns of the first matrix."""
    cost 1ms

extern down(hidden: read bfloat16[s, k], y: write bfloat16[s, k * world // 4]):
    """This rank's share of the result, from its rows of the second matrix."""
    cost 1ms

pattern tensor_parallel_layer(y: bfloat16[s, h], x: bfloat16[s, h], s = 192, h = 384):
    """An MLP whose weights are spread over the ranks: one all-reduce for two matrix products.

    The first matrix is cut by columns, so that each rank computes its own columns of the hidden
    layer from the whole x. The second is cut by rows, so that these columns are all it needs for
    its share of every element of y, and the shares are summed: s h elements, of which a rank sends
    at least 2 (world - 1) / world.
    Source: Shoeybi and others, Megatron-LM: training multi-billion parameter language models using
    model parallelism, 2019.
    """
    require 4 * h % world == 0, "every rank gets as many hidden columns"
    ensure x == old(x)
    ensure y == sum(down(up(old(x))) @ r for r in ranks)
    preset gpt3: world = 8, s = 2Ki, h = 12Ki

    temp hidden: bfloat16[s, 4 * h // world]

    up(x, hidden)
    down(hidden, y)
    all_reduce(y, op=sum)
