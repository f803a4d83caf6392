extern embed(
    weights: read dtype[n],
    text: read int64[t],
    act: write dtype[t, h],
    t: int,
    h: int,
    dtype = bfloat16,
):
    """Look up what this rank's part of the vocabulary has: zeros for other tokens."""

extern part(
    weights: read dtype[n],
    act: read dtype[t, h],
    out: write dtype[t, h],
    j: int,
    dtype = bfloat16,
):
    """This rank's part of what attention (j even) or the MLP (j odd) of layer j // 2 adds."""

extern score(
    weights: read dtype[n],
    act: read dtype[t, h],
    sums: write float32[3, t],
    t: int,
    dtype = bfloat16,
):
    """Of each token's scores in this part of the vocabulary: the largest, their sum, the right one."""

extern loss(
    weights: read dtype[n],
    act: update dtype[t, h],
    sums: read float32[3, t],
    grad: update dtype[n],
    dtype = bfloat16,
):
    """From the output of the last layer to this rank's part of its gradient."""

extern back(
    weights: read dtype[n],
    act: read dtype[t, h],
    out: write dtype[t, h],
    grad: update dtype[n],
    j: int,
    dtype = bfloat16,
):
    """This rank's part of the gradient by what came into attention or the MLP."""

extern adam(
    weights: update dtype[n],
    state: update float32[3, n],
    grad: read dtype[n],
    dtype = bfloat16,
):
    """One step of the optimizer, which keeps a copy of the weights and two moments in float32."""

pattern tensor(
    weights: dtype[n],
    grad: dtype[n],
    state: float32[3, n],
    text: int64[micro, batch // micro * length],
    act: dtype[batch // micro * length, hidden],
    layers = 2,
    hidden = 64,
    length = 32,
    batch = world,
    vocab = 256,
    micro = max(batch // 4, 1),
    n = layers * (
        12 * hidden**2 // world + 7 * hidden // world + 6 * hidden
    ) + ((vocab + world - 1) // world + length + 2) * hidden,
    dtype = bfloat16,
):
    """One step of a GPT in tensor parallel: each matrix is spread over all ranks.

    Every rank computes with its columns, then its rows, of each pair of matrices on all texts, and
    what it gets is summed: of each micro-batch, two sums of its activations per layer on the way
    forward, two of their gradients on the way back, which wait behind the gradient of the weights.
    The vocabulary is spread too. Activations take 10 + 24 / world bytes per token, layer and hidden
    element, of one micro-batch at a time.
    Source: Shoeybi and others, Megatron-LM: training multi-billion parameter language models using
    model parallelism, 2019; of the activations: Korthikanti and others, Reducing activation
    recomputation in large transformer models, 2022, equation 2.
    """
    require batch % micro == 0, "micro-batches are of one size"
    require hidden % world == 0, "every rank gets as many columns"
    preset gpt_7b: world = 8, layers = 32, hidden = 4Ki, length = 2Ki, batch = 32, vocab = 50304

    let tokens = batch // micro * length
    let widths = [4 * hidden // world, 8 * hidden // world]
    let attention = [2 * length // world, 0]
    ensure act == act @ 0  # what is summed is alike on all ranks, so that norms need no message
    ensure weights == adam(old(weights), old(state), grad)[0]

    temp out: dtype[tokens, hidden]
    temp sums: float32[3, tokens]
    temp acts: uint8[layers, (10 + 24 // world) * tokens * hidden]

    fill(grad, 0)
    for m in range(micro):
        embed(weights, text[m], act, tokens, hidden)
        all_reduce(act)
        for j in range(2 * layers):
            compute(
                "forward",
                matmul=[tokens, hidden, widths[j % 2] + attention[j % 2]],
                reads=weights,
                writes=acts[j // 2],
            )
            part(weights, act, out, j)
            all_reduce(out)
            out -> act, op=sum
        compute("head", matmul=[tokens, hidden, vocab // world], reads=weights)
        score(weights, act, sums, tokens)
        all_reduce(sums[0], op=max)
        all_reduce(sums[1])
        all_reduce(sums[2])
        compute("head backward", matmul=[tokens, hidden, 2 * vocab // world], reads=weights)
        loss(weights, act, sums, grad)
        all_reduce(act)
        for j in reversed(range(2 * layers)):
            compute(
                "backward of activations",
                matmul=[tokens, hidden, widths[j % 2] + 2 * attention[j % 2]],
                reads=[weights, acts[j // 2]],
            )
            back(weights, act, out, grad, j)
            summed = async all_reduce(out)
            compute("backward of weights", matmul=[tokens, hidden, widths[j % 2]], reads=weights)
            wait(summed)
            out -> act, op=sum
    adam(weights, state, grad)
