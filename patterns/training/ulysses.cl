extern attend(x: update bfloat16[s, heads, d]):
    """Attention of some of the heads over the whole sequence."""
    cost 1ms

pattern ulysses(x: bfloat16[s, heads, d], s = 64, heads = 24, d = 64):
    """Attention over a sequence that is spread over the ranks: change what is spread.

    A rank has its s tokens of all heads. One all-to-all gives it all tokens of some heads, which is
    all that attention wants; a second one brings the result back. Each moves about as much as
    x itself, whatever the world.
    Source: Jacobs and others, DeepSpeed Ulysses, 2023.
    """
    require heads % world == 0, "every rank gets as many heads"
    preset long: world = 8, s = 16Ki, heads = 64, d = 128

    temp whole: bfloat16[world * s, heads // world, d]

    to_heads(whole, x)
    attend(whole)
    to_sequence(x, whole)


pattern to_heads(
    y: bfloat16[world * s, heads // world, d],
    x: bfloat16[s, heads, d],
    s = 64,
    heads = 24,
    d = 64,
):
    """From some tokens of all heads to all tokens of some heads."""
    ensure y.chunks(world)[r] == (old(x) @ r).chunks(world, dim=1)[rank] for r in ranks

    temp packed: bfloat16[world, s, heads // world, d]
    for r in ranks:
        x.chunks(world, dim=1)[r] -> packed[r]
    all_to_all_single(y, packed)


pattern to_sequence(
    y: bfloat16[s, heads, d],
    x: bfloat16[world * s, heads // world, d],
    s = 64,
    heads = 24,
    d = 64,
):
    """From all tokens of some heads to some tokens of all heads."""
    ensure y.chunks(world, dim=1)[r] == (old(x) @ r).chunks(world)[rank] for r in ranks

    temp packed: bfloat16[world, s, heads // world, d]
    all_to_all_single(packed, x)
    for r in ranks:
        packed[r] -> y.chunks(world, dim=1)[r]
