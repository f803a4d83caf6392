# Corners of the language for test_on_gloo.py: each pattern runs on 4 ranks, as it is and as a script.

extern mix(a: read float32[k], b: update float32[k], by: int, weight = 1 / 4, last = k - 1):
    """Mixes; its last two arguments have defaults, one of which follows from a shape."""
    cost 1us
    require by >= 0

extern lambda(x: update float32[n], if_so: bool = true)

pattern names(lambda: float32[n], group: float32[n], torch: float32[n], n = 5):
    let list = n // 2
    let sum = list + 1
    let k = 3
    scale(lambda, k)
    for i in range(2):
        let k = k + i
        scale(group[:sum], k)
        if rank > i:
            let k = k * 2
            scale(torch[list:], k)
        scale(torch, k)
    scale(torch, k)

pattern shadows(x: float32[n], n = 16):
    let r = 1
    let f(r) = x.chunks(4)[r]
    for s in [r for r in ranks if r > 0]:
        let g(k) = f((k + s) % 4)
        scale(g(r), s + 1)
        for r in range(2):
            scale(g(r), r + 2)

pattern numbers(x: float32[n], y: float64[n], z: int32[n], n = 12, half = 0.5, pause = 1us, op = max):
    scale(x, 1 / 3)
    scale(y, half + 1 / 3)
    scale(x, half * 2)
    scale(x[: n / 2], 3)
    for i in range(1, 4):
        scale(y[:i], 6 / i)
        scale(y[i:], i)
    for w in [1 / 2, 3, 0.75]:
        scale(y, w)
    fill(z[: n * half], 7)
    fill(y[0:2], -1.25)
    scale(z, log2(n) + log2ceil(n) + share(n, 5, 1) + abs(-3) + min(n, 3) + max([2, 9, 4]))
    if pause < 2us and not half == 1:
        scale(z, -7 // 2 + -7 % 4 + (1 << 2 | 8 ^ 1 & 3) + ~1 + 2 ** 3)
    scale(y, 3ms / 1ms)
    all_reduce(z, op=op)
    compute(pause, "a label")
    compute("a product", matmul=[2, 3, 4], reads=x, writes=[y, y[:1]])

pattern lists(x: float32[n], n = 24, table: int[world, 2] = [[r + 1, 2 * r] for r in ranks]):
    scale(x, table[rank, 0] + table[rank][1] + table[1:3][0, 1])
    for i, part in enumerate(reversed(x.chunks(5)), 1):
        scale(part, i)
    for a, b in zip(range(3), [4, 5, 6]):
        scale(x[a:b], b)
    for a, b in [[i, j] for i in range(2) for j in range(i + 1) if i != 5]:
        scale(x[a], b + 2)
    scale(x, 1 + sum(r for r in ranks[1:]) + len(ranks[::2]) + len(enumerate(ranks)))
    scale(x, sum([r * k for r in ranks[:2] for k in range(2)]) + ranks[-1] + ranks[rank])
    if all(r < world for r in ranks) and any(r == rank for r in reversed(ranks)):
        scale(x, [5, 6, 7][-1] if rank in ranks[1:3] else 2)
    if rank not in range(0, world, 2) or rank == 0:
        scale(x, 3)

pattern views(x: float32[4, 6], y: float32[6, 4], s: float32):
    let flipped = x.transpose(0, 1)
    temp packed: like flipped
    flipped -> packed
    packed -> y, op=sum
    temp wide: float64[4, 6]
    x -> wide
    wide -> x, op=max
    x.chunks(4, dim=1)[1:3] -> y.reshape(4, 6).chunks(2, dim=1)[0]
    x.flatten()[1:20:3] -> y.flatten()[:7]
    scale(x[-1, :2], 2)
    scale(x.chunks(3)[rank % 3], rank + 1)
    scale(s, x.numel + x.ndim + x.shape[1] + len(x))
    let parts = y.flatten().chunks(7)
    for a in range(3):
        for b in range(a, 7):
            scale(parts[a:b], 2)
    if rank == 0:
        x[0, 0:0] -> y[0, 0:0]
    temp h: float16[4, 6]
    x -> h
    h -> x, op=sum

pattern groups(x: float32[n], y: float32[n], n = 8):
    group back = [3, 1, 2]
    group evens = ranks[0::2]
    mesh row = 2, column = 2
    if rank in back:
        broadcast(x, src=back[0], group=back)
        reduce(y, group_dst=1, group=back)
        broadcast(y, src=1, group=back, )
        all_reduce(y, op=min, group=back)
        if back.index == 0:
            send(x, dst=back[1], group=back)
        elif rank == 1:
            recv(y, src=3, group=back)
    for i in range(2):
        group pair = [r for r in ranks if r // 2 == rank // 2]
        all_reduce(x[i * 4:i * 4 + 4], group=pair)
        group alike = [r for r in ranks if r % 2 == rank % 2]
        broadcast(y, src=alike[i], group=alike)
    let mine = row if rank < 2 else column
    scale(x, len(mine) + mine.index + mine.size + mine[0])
    all_reduce(x, group=ranks)
    inner(y, group=row)
    if rank in evens:
        inner(y, factor=3, group=evens)
    let other = ranks
    scale(x, other.next + 1)
    parallel:
        send(x, dst=column.next)
        recv(y, src=column.prev, group=column)
        send(x, dst=column.next, group=column)
        temp z: like x
        recv(z, src=column.prev)

pattern inner(y: kind[n], n = 1, factor = 2, op = sum, kind = float32, twice = 2 * factor):
    temp copy: kind[n]
    y -> copy
    all_reduce(copy, op=op)
    copy -> y
    scale(y, factor + twice + n)
    if world > 1:
        group alone = [rank]
        inner(y[:n], group=alone)

pattern handles(x: float32[4, n], y: float32[4, n], n = 6):
    for i in range(2):
        for j in range(2):
            both[i, j] = async all_reduce(x[2 * i + j])
    wait(both[1, 0])
    wait(both)
    moved = async x[0] @ 0 -> y[0] @ 1
    moved = async x[1] @ 2 -> y[1] @ 3
    wait(moved)
    if rank == 0:
        n = async send(x[2], dst=3, tag=4)
        scale(y[3], 2)
        wait(n)
    elif rank == 3:
        n = async recv(y[2], src=0, tag=4)
        wait(n)
    for i in range(rank):
        sent[i] = async send(x[3], dst=i)
    for r in range(rank + 1, world):
        recv(y[3], src=r)
    for i in reversed(range(rank)):
        wait(sent[i])
    late = async barrier()
    scale(x, 2)
    wait(late)

pattern beside(x: float32[world, n], y: float32[world, n], z: float32[world, n], n = 3, how = max):
    parallel for r in ranks[1:]:
        x[0] @ r -> y[0] @ 0, op=sum
        x[1] @ r -> y[1] @ 0, op=how, tag=1
    parallel:
        for i in range(1, world):
            let part(k) = x[(k + i) % world]
            let tag = i
            sequence:
                send(part(rank), dst=(rank + i) % world, tag=tag)
                scale(z[i], i)
                scale(z[i], part(0).numel)
            sequence:
                temp inbox: like part(0)
                recv(inbox, src=(rank - i) % world, tag=tag)
                inbox -> y[i], op=sum
        scale(z[0], 2)
    parallel:
        around(y[0], x[0])
        all_reduce(z)
        if rank == 0:
            x[2] -> y[2]
        parallel:
            mix(x[3], y[3], 2)
        sequence:
            pass
    x[1] @ 1 -> y[1] @ (2 if world > 2 else 0), op=sum
    sequence:
        around(y[2], x[1])

pattern around(y: kind[n], x: kind[n], n = 4, kind = float32):
    parallel:
        send(x, dst=ranks.next, tag=9)
        recv(y, src=ranks.prev, tag=9)

pattern externs(x: float32[n], y: float32[n], n = 4):
    mix(x, y, rank)
    mix(a=y, b=x, by=3, weight=0.75)
    lambda(x, rank == 0)
    lambda(y)
    if rank < 0:
        mix(x, x, 7)

pattern shaped(x: float32[4, 2, 3], y: float32[24], row: float32[2, 3], n = 2):
    all_gather_single(x, row)
    all_gather_into_tensor(y, row)
    reduce_scatter_single(row, x)
    reduce_scatter_tensor(row, y)
    all_to_all_single(y, x)
    all_gather(y.chunks(4), row)
    all_to_all(x.chunks(4), y.chunks(4))
    reduce_scatter(row, [y.chunks(4)[r] for r in ranks])
    if rank == 2:
        scatter(row, y.chunks(4), src=2)
        gather(row, x.chunks(4), dst=2)
    else:
        scatter(row, src=2)
        gather(row, dst=2)

pattern uneven(x: float32[n], part: float32[share(n, world, rank)], y: float32[n], n = 10):
    all_gather(x.chunks(world), part)
    reduce_scatter(part, x.chunks(world), op=max)
    work = async all_gather(y.chunks(world), part)
    wait(work)
    let sizes = [1 + (r + rank) % 3 for r in ranks]
    temp out: float32[sum(sizes)]
    temp back: float32[sum(sizes)]
    fill(out, rank)
    let start(k) = sum(sizes[:k])
    let outs = [out[start(r):start(r) + sizes[r]] for r in ranks]
    let backs = [back[start(r):start(r) + sizes[r]] for r in ranks]
    all_to_all(backs, outs)
    all_to_all_single(out, back, output_split_sizes=sizes, input_split_sizes=sizes)
    out[:3] -> x[:3]

pattern kinds(b: bool[n], c: complex64[n], h: float16[n], i: uint8[n], n = 6):
    if rank % 2 == 0:
        send(c, dst=rank + 1)
        send(b, dst=rank + 1)
    else:
        recv(c, src=rank - 1)
        recv(b, src=rank - 1)
    all_reduce(c)
    all_reduce(i, op=band)
    all_reduce(h, op=product)
    temp other: like i
    i -> other
    other -> i, op=bxor
    other -> i, op=bor
    other -> i, op=min
    other -> i, op=product

pattern tree(x: float32[n], n = 7, op = max):
    if world > 1:
        group half = [r for r in ranks if r // (world // 2) == rank // (world // 2)]
        tree(x, group=half)
        temp inbox: like x
        parallel:
            send(x, dst=(rank + world // 2) % world)
            recv(inbox, src=(rank + world // 2) % world)
        inbox -> x, op=op

pattern nothing():
    barrier()
