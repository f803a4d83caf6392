"""A star of messages through one rank (CL408).

One rank sends to all others, or receives from all of them, one message each. All data go through
its link, one after the other: the time grows with the world. The collectives for it share the
work: `broadcast` where all get the same, `scatter` where each gets a part, `reduce` and `gather` on
the way back. Trees need about log2(world) steps, and where data are large they are cut into pieces
that several ranks forward. A `gather` to a rank that answers with a `broadcast` is a star too, as
all that was gathered has to pass that rank, and to fit into its memory.

Write the collective with that rank as root; instead of gather and broadcast, an `all_reduce` if the
answer is a sum or the like, else an `all_gather` after which each rank works out the answer itself.

- Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, 2005
- [torch.distributed, collective functions](https://docs.pytorch.org/docs/2.13/distributed.html)
- [accelerate PR 4105](https://github.com/huggingface/accelerate/pull/4105): gathered on rank 0, it
  timed out at 2,816 ranks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.rule import Rule
from commlang.checks.speed.costs import LARGE, POSTED_MS, size
from commlang.checks.speed.data import bytes_of
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.program.points import top_unit
from commlang.program.sorting import combine, distinct, stable_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

FEWEST = 4
"""Ranks from which on a tree is shorter than a star."""

RULE = Rule(
    "CL408",
    "star-through-one-rank",
    Severity.ADVICE,
    invalid=(
        """\
pattern main(x: float32[n], n = 1Mi):
    parallel for r in ranks[1:]:
        x @ 0 -> x @ r  # CL408
""",
        """\
pattern main(whole: float32[world, n], x: float32[n], n = 1Mi):
    if rank == 0:
        x -> whole[0]
        for r in ranks[1:]:
            recv(whole[r], src=r)  # CL408
    else:
        send(x, dst=0)
""",
        """\
pattern main(x: float32[n], n = 1Mi):
    temp whole: float32[world * n]
    if rank == 0:
        gather(x, whole.chunks(world), dst=0)  # CL408
        for r in ranks[1:]:
            whole.chunks(world)[r] -> x, op=max
    else:
        gather(x, dst=0)
    broadcast(x, src=0)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 1Mi):
    broadcast(x, src=0)
""",
        """\
pattern main(y: float32[world, n], x: float32[world, n], n = 1Mi):
    x[rank] -> y[rank]
    parallel for r in ranks:
        for d in ranks:
            if r != d:
                x[d] @ r -> y[r] @ d
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Statements by which one rank, and no other, speaks to all others in one go."""
    program = facts.program
    if program.world < FEWEST:
        return
    for kind in (Kind.SEND, Kind.RECV):
        stars: dict[int, list[Array]] = {}
        for rows in _bursts(facts, kind):
            stars.setdefault(int(program.site[rows[0]]), []).append(rows)
        for found in stars.values():
            if len({int(program.rank[rows[0]]) for rows in found}) == 1:
                yield _report(facts, found[0], kind)
    yield from _answered(facts)


def _answered(facts: Facts) -> Iterator[Diagnostic]:
    """Gathers of much to a rank that broadcasts next on the same group."""
    program, calls = facts.program, facts.collectives
    start = calls.start[:-1]
    kind, root = program.kind[calls.row[start]], program.peer[calls.row[start]]
    answers = {
        (int(calls.group[i]), int(calls.turn[i])): int(root[i])
        for i in np.flatnonzero((kind == Kind.BROADCAST) & calls.whole).tolist()
    }
    told: set[int] = set()
    for i in np.flatnonzero((kind == Kind.GATHER) & calls.whole).tolist():
        rows = calls.row[calls.start[i] : calls.start[i + 1]]
        asks = (int(calls.group[i]), int(calls.turn[i]) + 1)
        site, total = int(program.site[rows[0]]), int(bytes_of(facts, rows).max())
        large = len(rows) >= FEWEST and total >= LARGE and answers.get(asks) == int(root[i])
        if large and site not in told:
            told.add(site)
            yield _tell_answered(facts, int(rows[program.rank[rows] == root[i]][0]), total)


def _tell_answered(facts: Facts, row: int, total: int) -> Diagnostic:
    root = int(facts.program.rank[row])
    return Diagnostic(
        RULE.code,
        f"rank {root} gathers from all and answers all",
        (facts.label(row),),
        (f"{size(total)} go through its link, and lie in its memory",),
        "write `all_reduce` if the answer is a sum or the like, else `all_gather`, after which "
        "each rank works it out itself",
        severity=Severity.ADVICE,
    )


def _bursts(facts: Facts, kind: Kind) -> Iterator[Array]:
    """Rows of one rank and statement to all other ranks, at once or one right after the other."""
    program = facts.program
    rows = np.flatnonzero(program.kind == kind)
    rows = rows[facts.messages.partner[rows] >= 0]
    if len(rows) < program.world - 1:
        return
    unit = np.where(program.nest[rows] >= 0, top_unit(program, rows), -1)
    local = (program.kind == Kind.ACCUMULATE) | (program.kind == Kind.COPY)
    others = np.concatenate([[0], np.cumsum(~local)])  # local work between messages is no matter
    follows = np.zeros(len(rows), dtype=np.bool_)
    follows[1:] = (unit[1:] < 0) & (unit[:-1] < 0) & (others[rows[1:]] == others[rows[:-1]] + 1)
    chain = np.cumsum(~follows)
    column = np.where(unit >= 0, unit, 0)
    number = combine(
        [
            (program.rank[rows].astype(np.int64), program.world),
            (program.site[rows].astype(np.int64), len(program.sites)),
            (column, int(column.max()) + 1),
            (np.where(unit >= 0, 0, chain), int(chain.max()) + 1),
        ]
    )
    order = stable_order(number)
    number = number[order]
    starts = np.flatnonzero(np.concatenate([[True], number[1:] != number[:-1]]))
    sizes = np.diff(np.append(starts, len(number)))
    for at in np.flatnonzero(sizes == program.world - 1).tolist():
        burst = rows[order[starts[at] : starts[at] + sizes[at]]]
        length = program.operands.length[program.first[burst]]
        everyone = len(distinct(program.peer[burst])) == len(burst)
        if everyone and (length == length[0]).all() and length[0]:
            yield burst


def _report(facts: Facts, rows: Array, kind: Kind) -> Diagnostic:
    program = facts.program
    row, rank = int(rows[0]), int(program.rank[rows[0]])
    data = np.stack([column[program.first[rows]] for column in _columns(facts)])
    same = bool((data == data[:, :1]).all())
    each = int(bytes_of(facts, rows[:1])[0])
    if kind is Kind.SEND:
        name, end, verb = "broadcast" if same else "scatter", "src", "sends to"
    else:
        name, end, verb = "reduce" if _adds(facts, rows) else "gather", "dst", "receives from"
    message = f"rank {rank} {verb} all {len(rows)} others, one message each"
    if name in ("broadcast", "reduce"):
        steps = (program.world - 1).bit_length()
        note = f"{size(each * len(rows))} go through its link; a tree shares them, in {steps} steps"
    else:
        note = f"one call for {len(rows)} messages, which cost {POSTED_MS} ms or more each on gloo"
    hint = f"write `{name}(…, {end}={rank})`"
    return Diagnostic(
        RULE.code, message, (facts.label(row),), (note,), hint, severity=Severity.ADVICE
    )


def _columns(facts: Facts) -> tuple[Array, Array]:
    ops = facts.program.operands
    return ops.buffer, ops.offset


def _adds(facts: Facts, rows: Array) -> bool:
    """Whether what arrives is accumulated: by rows of the same statement."""
    program = facts.program
    spans = {s.span for s in program.sites if s.kind is Kind.ACCUMULATE}
    return program.site_of(int(rows[0])).span in spans
