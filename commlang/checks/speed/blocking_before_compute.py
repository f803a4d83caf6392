"""A blocking operation before work that does not need it (CL402).

The rank waits for a message or a collective, and then computes something that touches none of its
data. Both could go on at the same time: started with `async`, the operation moves its data while
the rank computes. What is saved is the shorter of the two, in each turn. Only work with a known
cost, and that says what it reads and writes, is looked at.

Bind the operation to a handle, and wait for it where its data are next touched.

- [torch.distributed, asynchronous operations](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.rule import Rule
from commlang.checks.speed.costs import milliseconds
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.expand.record import Site
    from commlang.program.columns import Array

_CROSS = 1 << 24
"""Pairs of operands that are compared at once, at most."""

RULE = Rule(
    "CL402",
    "blocking-before-compute",
    Severity.ADVICE,
    invalid=(
        """\
pattern main(grad: float32[layers, n], layers = 4, n = 1Mi):
    for i in reversed(range(layers)):
        compute(3ms, "backward", writes=grad[i])
        all_reduce(grad[i])  # CL402
""",
    ),
    valid=(
        """\
pattern main(grad: float32[layers, n], layers = 4, n = 1Mi):
    for i in reversed(range(layers)):
        compute(3ms, "backward", writes=grad[i])
        work[i] = async all_reduce(grad[i])
    wait(work)
""",
        """\
pattern main(x: float32[n], y: float32[n], n = 1Mi):
    all_reduce(x)
    compute(3ms, "forward", reads=x, writes=y)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement that is followed by such work whenever work follows it."""
    program = facts.program
    costly = np.array([_costs(site) for site in program.sites], dtype=np.bool_)
    if not costly.any():
        return
    waits = program.site_kind <= Kind.ALL_TO_ALL
    waits &= ~program.site_async
    work = costly[program.site] & (program.nest < 0) & (program.count > 0)
    first = np.flatnonzero(
        work[1:]
        & waits[program.site[:-1]]
        & (program.nest[:-1] < 0)
        & (program.rank[1:] == program.rank[:-1])
    )
    bound = _conflicts(facts, first, first + 1)
    site = program.site[first]
    never = np.zeros(len(program.sites), dtype=np.bool_)
    never[site[bound]] = True
    told: set[int] = set()
    for row in first[~never[site]].tolist():
        if int(program.site[row]) not in told:
            told.add(int(program.site[row]))
            mine = (site == program.site[row]) & (program.rank[first] == program.rank[row])
            yield _report(facts, row, int(mine.sum()))


def _costs(site: Site) -> bool:
    """Whether it is work of which the pattern says that it takes time."""
    if site.kind not in (Kind.COMPUTE, Kind.EXTERN):
        return False
    given = dict(site.arguments)
    return "matmul" in given or any(given.get(name) for name in ("duration", "cost"))


def _conflicts(facts: Facts, one: Array, other: Array) -> Array:
    """Per pair of rows, whether they touch an element that one of them writes."""
    program, result = facts.program, np.zeros(len(one), dtype=np.bool_)
    if not len(one):
        return result
    sizes = program.count[one].astype(np.int64) * program.count[other]
    if int(sizes.sum()) > _CROSS:
        half = len(one) // 2
        if not half:
            return ~result
        parts = (_conflicts(facts, one[s], other[s]) for s in (slice(half), slice(half, None)))
        return np.concatenate(list(parts))
    pair = np.repeat(np.arange(len(one)), sizes)
    place = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    a = program.first[one][pair] + place // program.count[other][pair]
    b = program.first[other][pair] + place % program.count[other][pair]
    low, high = _spans(facts, a)
    low_b, high_b = _spans(facts, b)
    ops = program.operands
    meet = (ops.buffer[a] == ops.buffer[b]) & (low < high_b) & (low_b < high)
    meet &= (ops.access[a] > 0) | (ops.access[b] > 0)
    result[pair[meet]] = True
    return result


def _spans(facts: Facts, operand: Array) -> tuple[Array, Array]:
    """The first element of operands and the one after the last, gaps included."""
    ops = facts.program.operands
    extent = [
        1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        for shape, strides in ops.layouts
    ]
    layout = ops.layout[operand]
    spans = np.array([*extent, 0], dtype=np.int64)[layout]
    length = np.where(layout >= 0, spans, ops.length[operand])
    return ops.offset[operand], ops.offset[operand] + length


def _report(facts: Facts, row: int, times: int) -> Diagnostic:
    program = facts.program
    message = (
        f"{program.site_of(row).name} on {facts.event(row)} blocks, and the work after it "
        "touches none of its data"
    )
    labels = (facts.label(row), facts.label(row + 1, "could run meanwhile"))
    cost = program.arguments_of(row + 1)
    taken = cost.get("duration", cost.get("cost"))
    turns = f"in each of {times} turns" if times > 1 else "once"
    known = f"up to {milliseconds(1000 * float(taken))} of work" if taken else "the work"
    notes = (f"{known} could hide the operation, or be hidden by it, {turns}",)
    hint = f"`work = async {program.text(row)}`, and `wait(work)` before its data are next touched"
    return Diagnostic(RULE.code, message, labels, notes, hint, severity=Severity.ADVICE)
