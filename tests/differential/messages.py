"""Phases of messages: rings, loops, arrows, branches, and patterns called on groups."""

from __future__ import annotations

from tests.differential.writer import Lines, Writer, block, phase

HELPED = ("around", "down", "stuck")
"""Patterns that stand beside `main` where they are called."""


@phase
def ring(p: Writer, faulty: bool) -> Lines:
    """Everyone passes something on; without `parallel` nobody gets to its recv."""
    hop, tag, row = p.random.randint(1, p.world - 1), p.tag(), p.row()
    send = f"send({p.source()}, dst=(rank + {hop}) % world{tag})"
    recv = f"recv(y[{row}], src=(rank - {hop}) % world{tag})"
    if faulty:
        return p.random.choice(([send, recv], [recv, send], [*_late(p, recv), send]))
    pick = p.random.random()
    if pick < 0.5:
        return block("parallel:", p.random.sample([send, recv], 2))
    if pick < 0.7:
        name = p.handle()
        one, other = p.random.sample([send, recv], 2)
        return [f"{name} = async {one}", other, f"wait({name})"]
    if pick < 0.85:
        names = [p.handle(), p.handle()]
        lines = [f"{n} = async {s}" for n, s in zip(names, (send, recv), strict=True)]
        p.late += [f"wait({name})" for name in names]
        p.fresh = []
        return lines
    inner = [block("sequence:", [s]) for s in (send, recv)]
    return block("parallel:", [line for part in inner for line in part])


def _late(p: Writer, recv: str) -> Lines:
    """A receive that is waited for before the send that it needs."""
    name = p.handle()
    return [f"{name} = async {recv}", f"wait({name})"]


@phase
def loop(p: Writer, faulty: bool) -> Lines:
    """A ring in several steps, each with a row of its own."""
    steps = p.random.randint(2, 4)
    row, tag = p.row(steps), p.random.choice(("", ", tag=s"))
    send = f"send(x[(rank + s) % {2 * p.world}], dst=ranks.next{tag})"
    recv = f"recv(y[{row} + s], src=ranks.prev{tag})"
    if faulty:
        inner = p.random.choice(([send, recv], [recv, send]))
        if p.maybe():  # only the last step is wrong
            right = block(f"if s < {steps - 1}:", block("parallel:", [send, recv]))
            inner = [*right, *block("else:", inner)]
        return block(f"for s in range({steps}):", inner)
    if p.maybe(0.3):
        name = p.handle()
        started = [f"{name}[s, 0] = async {send}", f"{name}[s, 1] = async {recv}"]
        return [*block(f"for s in range({steps}):", started), f"wait({name})"]
    return block(f"for s in range({steps}):", block("parallel:", [send, recv]))


@phase
def parity(p: Writer, faulty: bool) -> Lines:
    """Blocking messages round a ring end, as soon as one rank does it the other way round."""
    row = p.row()
    send, recv = f"send({p.source()}, dst=ranks.next)", f"recv(y[{row}], src=ranks.prev)"
    odd = p.random.choice(("rank % 2 == 0", "rank == 0", "rank < world // 2"))
    return [*block(f"if {odd}:", [send, recv]), *block("else:", [recv, send])]


@phase
def transfers(p: Writer, faulty: bool) -> Lines:
    """Arrows: one, a chain, or all at once."""
    op = p.random.choice(("", f", op={p.op()}"))
    pick = p.random.random()
    if pick < 0.35:
        a, b = p.random.sample(range(p.world), 2)
        line = f"{p.source()} @ {a} -> y[{p.row()}] @ {b}{op}{p.tag()}"
        if not op and p.maybe(0.3):
            name = p.handle()
            return [f"{name} = async {line}", f"wait({name})"]
        return [line]
    if pick < 0.55:
        row = p.row()
        return block("for r in range(world - 1):", [f"y[{row}] @ r -> y[{row}] @ (r + 1){op}"])
    hop = p.random.randint(1, p.world - 1)
    head = "parallel for r in ranks:" if p.maybe(0.7) else "for r in ranks:"
    return block(head, [f"{p.source()} @ r -> y[{p.row()}] @ (r + {hop}) % world{op}"])


@phase
def branches(p: Writer, faulty: bool) -> Lines:
    """Sequences side by side, which go on as their messages come."""
    hop = p.random.randint(1, p.world - 1)
    rows = [p.row() for _ in range(3)]
    to, come = f"(rank + {hop}) % world", f"(rank - {hop}) % world"
    first = [f"send(x[0], dst={to}, tag=11)", f"recv(y[{rows[0]}], src={come}, tag=12)"]
    second = [f"recv(y[{rows[1]}], src={come}, tag=11)", f"send(x[1], dst={to}, tag=12)"]
    if faulty:
        which = p.random.choice((first, second))
        which.reverse()
        if p.maybe(0.3):
            first[0], second[0] = second[0], first[0]
    parts = [block("sequence:", first), block("sequence:", second)]
    if p.maybe():
        parts.append([f"send({p.source()}, dst={to})"])
        parts.append([f"recv(y[{rows[2]}], src={come})"])
    if p.maybe(0.3):
        inner = block("parallel:", [f"send(x[2], dst={to}, tag=13)", "compute(1us)"])
        parts.append(block("sequence:", [*inner, "compute(1us)"]))
        parts.append([f"recv(y[{p.row()}], src={come}, tag=13)"])
    p.random.shuffle(parts)
    return block("parallel:", [line for part in parts for line in part])


@phase
def helpers(p: Writer, faulty: bool) -> Lines:
    """A pattern called on a group."""
    members, on = p.on()
    name = "stuck" if faulty else p.random.choice(HELPED[:2])
    row = p.row(known=not on)
    call = f"{name}(y[{row}], {p.source()}{on})"
    return block(f"if rank in {list(members)}:", [call]) if on else [call]
