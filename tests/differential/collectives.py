"""Phases of collectives, of the world and of groups."""

from __future__ import annotations

from tests.differential.writer import Lines, Writer, block, phase

_COLLECTIVES = (
    *("all_reduce", "all_gather", "all_gather_single", "reduce_scatter", "reduce_scatter_single"),
    *("all_to_all", "all_to_all_single", "uneven", "barrier"),
    *("broadcast", "reduce", "gather", "scatter", "broadcast", "reduce"),
)


@phase
def collective(p: Writer, faulty: bool) -> Lines:
    """One collective of the world or of a group; or not by all, or not with one root."""
    members, on = p.on()
    lines, rooted = _call(p, members, on, faulty)
    if rooted:
        p.rooted = True
    if faulty and not (rooted and p.maybe()):
        missing = p.random.choice(members)
        return block(f"if rank in {[m for m in members if m != missing]}:", lines)
    return lines if not on else block(f"if rank in {list(members)}:", lines)


def _call(p: Writer, members: tuple[int, ...], on: str, faulty: bool) -> tuple[Lines, bool]:
    """The lines of a call by all members, and whether it has a root."""
    size, root = len(members), p.random.choice(members)
    known = not on
    kind = p.random.choice(_COLLECTIVES)
    if kind in ("broadcast", "reduce", "gather", "scatter"):
        where = str(root)
        if faulty:
            where = f"({root} if rank != {members[0]} else {p.random.choice(members)})"
        lines = _rooted(p, kind, members, on, where)
        return lines, True
    match kind:
        case "all_reduce":
            call = f"all_reduce(y[{p.row(known=known)}], op={p.op()}{on})"
        case "all_gather":
            row = p.row(size, known=known)
            listed = ", ".join(f"y[{row + i}]" for i in range(size))
            call = f"all_gather([{listed}], {p.source()}{on})"
        case "all_gather_single":
            row = p.row(size, known=known)
            call = f"all_gather_single(y[{row}:{row + size}], {p.source()}{on})"
        case "reduce_scatter":
            call = f"reduce_scatter(y[{p.row(known=known)}], x[:{size}].chunks({size}), op={p.op()}"
            call = (
                call.replace(f"x[:{size}].chunks({size})", f"[x[i] for i in range({size})]")
                + f"{on})"
            )
        case "reduce_scatter_single":
            call = f"reduce_scatter_single(y[{p.row(known=known)}], x[:{size}], op={p.op()}{on})"
        case "all_to_all":
            row = p.row(size, known=known)
            lists = f"[y[{row} + i] for i in range({size})], [x[i] for i in range({size})]"
            call = f"all_to_all({lists}{on})"
        case "all_to_all_single":
            row = p.row(size, known=known)
            call = f"all_to_all_single(y[{row}:{row + size}], x[:{size}]{on})"
        case "uneven" if not on:
            row = p.row(2 * size, known=False)
            count = "sum(1 + (rank + d) % 2 for d in ranks)"
            sizes = "[1 + (rank + d) % 2 for d in ranks]"
            call = f"all_to_all_single(y[{row}:{row} + {count}], x[:{count}], {sizes}, {sizes})"
        case _:
            call = f"barrier({on.removeprefix(', ')})"
    return maybe_async(p, [call]), False


def _rooted(p: Writer, kind: str, members: tuple[int, ...], on: str, root: str) -> Lines:
    size, known = len(members), not on
    if kind == "broadcast":
        return maybe_async(p, [f"broadcast(y[{p.row(known=known)}], src={root}{on})"])
    if kind == "reduce":
        row = p.row(known=False)
        return maybe_async(p, [f"reduce(y[{row}], dst={root}, op={p.op()}{on})"])
    if kind == "gather":
        row, source = p.row(size, known=False), p.source()
        given = f"gather({source}, [y[{row} + i] for i in range({size})], dst={root}{on})"
        return [*block(f"if rank == {root}:", [given]),
                *block("else:", [f"gather({source}, dst={root}{on})"])]  # fmt: skip
    row = p.row(known=known)
    given = f"scatter(y[{row}], [x[i] for i in range({size})], src={root}{on})"
    return [*block(f"if rank == {root}:", [given]),
            *block("else:", [f"scatter(y[{row}], src={root}{on})"])]  # fmt: skip


def maybe_async(p: Writer, lines: Lines) -> Lines:
    if p.maybe(0.7):
        return lines
    name = p.handle()
    if p.maybe(0.3):  # a rank that did not start it has nothing to wait for
        p.late.append(f"wait({name})")
        p.fresh = []
        return [f"{name} = async {lines[0]}"]
    return [f"{name} = async {lines[0]}", *p.random.choice(([], ["compute(1us)"])), f"wait({name})"]


@phase
def overtaking(p: Writer, faulty: bool) -> Lines:
    """Collectives of several groups under way at once, started in orders that differ."""
    everyone = tuple(range(p.world))
    groups = [(members, f", group=g{i}") for i, members in enumerate(p.groups)] + [(everyone, "")]
    lines: list[Lines] = []
    waits: Lines = []
    for members, on in groups:
        name = p.handle()
        call = f"{name} = async all_reduce(y[{p.row(known=not on)}], op={p.op()}{on})"
        lines.append(block(f"if rank in {list(members)}:", [call]))
        waits.append(f"wait({name})")
    flat, turned = ([line for part in order for line in part] for order in (lines, lines[::-1]))
    if faulty:  # the odd one waits before it goes on
        turned = [
            line for part, w in zip(lines[::-1], waits[::-1], strict=True) for line in [*part, w]
        ]
    p.random.shuffle(waits)
    odd = p.random.randrange(p.world)
    return [*block(f"if rank == {odd}:", turned), *block("else:", flat), *waits]


@phase
def several(p: Writer, faulty: bool) -> Lines:
    """Collectives of some groups, which members of both must call in one order."""
    calls: list[tuple[tuple[int, ...], Lines]] = []
    for _ in range(p.random.randint(2, 3)):
        members, on = p.on()
        op = "barrier({})" if p.maybe(0.3) else f"all_reduce(y[{p.row(known=not on)}]{{}})"
        calls.append((members, [op.format(on if "y[" in op else on.removeprefix(", "))]))
    odd = p.random.randrange(p.world)
    straight = [block(f"if rank in {list(m)}:", lines) for m, lines in calls]
    flat = [line for part in straight for line in part]
    if not faulty:
        return flat
    turned = [line for part in reversed(straight) for line in part]
    return [*block(f"if rank == {odd}:", turned), *block("else:", flat)]
