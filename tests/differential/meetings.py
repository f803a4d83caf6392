"""A phase in which every rank has statements of its own, and one of local work."""

from __future__ import annotations

from tests.differential.writer import Lines, Writer, block, phase


@phase
def meetings(p: Writer, faulty: bool) -> Lines:
    """Every rank has a block of its own with its part of the same meetings, shuffled if faulty."""
    parts: list[Lines] = [[] for _ in range(p.world)]
    with_root = not faulty or p.maybe(0.06)
    for number in range(p.random.randint(2, 6)):
        _meeting(p, parts, number, with_root)
    lines: Lines = []
    for rank, part in enumerate(parts):
        if faulty:
            _disturb(p, part)
        lines += block(f"{'el' if rank else ''}if rank == {rank}:", _shape(p, part))
    p.fresh = []
    return lines


def _meeting(p: Writer, parts: list[Lines], number: int, with_root: bool) -> None:
    """One message or collective, in the part of each rank that takes part."""
    if p.maybe(0.65):
        a, b = p.random.sample(range(p.world), 2)
        tag = p.random.choice(("", f", tag={number}"))
        parts[a].append(f"send({p.source()}, dst={b}{tag})")
        parts[b].append(f"recv(y[{p.row()}], src={a}{tag})")
        return
    members, on = p.on()
    root = p.random.choice(members)
    kind = p.random.choice(("all_reduce", "barrier", "broadcast", "reduce", "gather"))
    if not with_root and kind in ("broadcast", "reduce", "gather"):
        kind = "all_reduce"
    p.rooted = p.rooted or kind in ("broadcast", "reduce", "gather")
    row, source, op = p.row(len(members)), p.source(), p.op()
    listed = ", ".join(f"y[{row + i}]" for i in range(len(members)))
    for member in members:
        given = f", [{listed}]" if member == root else ""
        parts[member].append(
            {
                "all_reduce": f"all_reduce(y[{row}], op={op}{on})",
                "barrier": f"barrier({on.removeprefix(', ')})",
                "broadcast": f"broadcast(y[{row}], src={root}{on})",
                "reduce": f"reduce(y[{row}], dst={root}, op={op}{on})",
                "gather": f"gather({source}{given}, dst={root}{on})",
            }[kind]
        )


def _disturb(p: Writer, part: Lines) -> None:
    while len(part) > 1 and p.maybe(0.4):
        i = p.random.randrange(len(part) - 1)
        part[i], part[i + 1] = part[i + 1], part[i]
    if part and p.maybe(0.05):
        del part[p.random.randrange(len(part))]


def _shape(p: Writer, part: Lines) -> Lines:
    """Some statements side by side, in sequence, or asynchronous."""
    lines: Lines = []
    rest, waits = list(part), Lines()
    while rest:
        size = min(len(rest), p.random.randint(1, 3))
        here, rest = rest[:size], rest[size:]
        roll = p.random.random()
        if roll < 0.3 and size > 1:
            lines += block("parallel:", here)
        elif roll < 0.55:
            name = p.handle()
            lines += [f"{name} = async {here[0]}", *here[1:]]
            waits.append(f"wait({name})")
        else:
            lines += here
        while waits and p.maybe():
            lines.append(waits.pop(p.random.randrange(len(waits))))
    p.random.shuffle(waits)
    return lines + waits


@phase
def local(p: Writer, faulty: bool) -> Lines:
    """Copies, sums and what has to be computed."""
    row = p.row(2)
    lines = [
        f"{p.source()} -> y[{row}]",
        f"{p.source()} -> y[{row}], op={p.op()}",
        f'compute(1us, "work", reads={p.source()}, writes=y[{row + 1}])',
        *([f"fill(y[{row + 1}], {p.random.randint(0, 5)})", f"scale(y[{row}], 1)"]),
    ]
    return p.random.sample(lines, p.random.randint(1, len(lines)))
