"""A small operation behind a large one on the same communicator (CL409).

NCCL runs the operations of a communicator one after the other, in the order of their issue. A small
collective that is issued after a large one, and waited for before it, takes as long as both: the
line is blocked at its head. gloo works on several at once and is no subject of this.

Issue the small one first, or give it a group of its own (`group side = ranks`), which is another
communicator, and issue both in one order on all ranks.

- [NCCL, streams](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/streams.html)
- [NCCL, communicators](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/communicators.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.rule import Rule
from commlang.checks.speed.costs import LARGE, size
from commlang.checks.speed.data import bytes_of
from commlang.diagnostics import Diagnostic, Severity
from commlang.program.sorting import combine, stable_order
from commlang.transports import Backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

TIMES = 16
"""So many times as large is the operation ahead, at least."""

RULE = Rule(
    "CL409",
    "head-of-line",
    Severity.ADVICE,
    invalid=(
        """\
# backend: nccl
pattern main(grad: float32[n], loss: float32[1], n = 64Mi):
    work = async all_reduce(grad)
    all_reduce(loss)  # CL409
    compute(1ms, "log", reads=loss)
    wait(work)
""",
    ),
    valid=(
        """\
# backend: nccl
pattern main(grad: float32[n], loss: float32[1], n = 64Mi):
    all_reduce(loss)
    work = async all_reduce(grad)
    compute(1ms, "log", reads=loss)
    wait(work)
""",
        """\
# backend: gloo
pattern main(grad: float32[n], loss: float32[1], n = 64Mi):
    work = async all_reduce(grad)
    all_reduce(loss)
    compute(1ms, "log", reads=loss)
    wait(work)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements that follow one another on a communicator."""
    if facts.target.backend not in (None, Backend.NCCL) or not facts.program.site_async.any():
        return
    program = facts.program
    rows = np.flatnonzero(program.is_collective)
    columns = [
        (program.rank[rows].astype(np.int64), program.world),
        (program.group[rows].astype(np.int64), len(program.groups.entries)),
    ]
    line = combine(columns) if len(rows) else rows
    order = stable_order(line) if len(rows) else rows
    rows, line = rows[order], line[order]
    pending = program.site_async[program.site[rows]]
    joined = np.where(pending, program.wait[rows], rows)
    ahead, behind = slice(None, -1), slice(1, None)
    load = bytes_of(facts, rows)
    blocked = (line[ahead] == line[behind]) & pending[ahead] & (joined[behind] >= 0)
    blocked &= (joined[ahead] > joined[behind]) & (load[ahead] >= LARGE)
    blocked &= (load[ahead] >= TIMES * load[behind]) & (load[behind] > 0)
    told: set[tuple[int, int]] = set()
    for at in np.flatnonzero(blocked).tolist():
        one, other = int(rows[at]), int(rows[at + 1])
        pair = int(program.site[one]), int(program.site[other])
        if pair not in told:
            told.add(pair)
            yield _report(facts, one, other, int(load[at]), int(load[at + 1]))


def _report(facts: Facts, one: int, other: int, large: int, small: int) -> Diagnostic:
    name = facts.program.site_of(other).name
    message = f"{name} of {size(small)} waits for {size(large)} ahead of it on {facts.event(other)}"
    labels = (facts.label(other, "needed first"), facts.label(one, "issued first"))
    notes = ("on NCCL the operations of one communicator run in the order of their issue",)
    hint = "issue it first, or on a group of its own: `group side = ranks`"
    return Diagnostic(RULE.code, message, labels, notes, hint, severity=Severity.ADVICE)
