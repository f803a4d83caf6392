extern attend(x: update bfloat16[s, heads, d]):
    """Attention of some of the heads over the whole sequence."""
    cost 1ms

pattern ulysses(
    whole: bfloat16[world * s, heads // world, d],
    x: bfloat16[s, heads, d],
    s = 64,
    heads = 24,
    d = 64,
):
    """Attention over a sequence that is spread over the ranks: change what is spread.

    A rank has its s tokens of all heads. One all-to-all gives it all tokens of some heads, which is
    all that attention wants; a second one brings the result back. In each a rank sends
    (world - 1) / world of x. Here x stands for queries, keys and values, which all travel there,
    and for the result, which travels back; whole is what a rank makes of its heads.
    Source: Jacobs and others, DeepSpeed Ulysses: system optimizations for enabling training of
    extreme long sequence transformer models, 2023.
    """
    require heads % world == 0, "every rank gets as many heads"
    ensure whole == attend(concat((old(x) @ r).chunks(world, dim=1)[rank] for r in ranks))
    ensure x.chunks(world, dim=1)[r] == (whole @ r).chunks(world)[rank] for r in ranks
    preset long: world = 8, s = 16Ki, heads = 64, d = 128

    to_heads(whole, x)
    attend(whole)
    to_sequence(x, whole)

pattern to_heads(
    y: dtype[world * s, heads // world, d],
    x: dtype[s, heads, d],
    s = 64,
    heads = 24,
    d = 64,
    dtype = bfloat16,
):
    """From some tokens of all heads to all tokens of some heads."""
    require heads % world == 0, "every rank gets as many heads"
    ensure y.chunks(world)[r] == (old(x) @ r).chunks(world, dim=1)[rank] for r in ranks

    temp packed: dtype[world, s, heads // world, d]
    for r in ranks:
        x.chunks(world, dim=1)[r] -> packed[r]
    all_to_all_single(y, packed)

pattern to_sequence(
    y: dtype[s, heads, d],
    x: dtype[world * s, heads // world, d],
    s = 64,
    heads = 24,
    d = 64,
    dtype = bfloat16,
):
    """From all tokens of some heads to some tokens of all heads."""
    require heads % world == 0, "every rank gets as many heads"
    ensure y.chunks(world, dim=1)[r] == (old(x) @ r).chunks(world)[rank] for r in ranks

    temp packed: dtype[world, s, heads // world, d]
    all_to_all_single(packed, x)
    for r in ranks:
        packed[r] -> y.chunks(world, dim=1)[r]
