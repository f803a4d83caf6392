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
    ensure y == y @ 0
    preset gpt3: world = 8, s = 2Ki, h = 12Ki

    temp hidden: bfloat16[s, 4 * h // world]

    compute("up", matmul=[s, 4 * h // world, h], reads=x, writes=hidden)
    compute("down", matmul=[s, h, 4 * h // world], reads=hidden, writes=y)
    all_reduce(y, op=sum)
