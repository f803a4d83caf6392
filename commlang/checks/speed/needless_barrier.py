"""A barrier that orders nothing (CL407).

A collective in which every rank needs data of all others, such as `all_reduce` or `all_gather`,
ends on no rank before all have started it. A barrier right before or after one, on the same group
and with nothing in between, therefore orders nothing that was not ordered: it only costs a round
of messages, 0.18 ms between two processes on gloo and 4.8 ms among eight. Rooted collectives order
only root and leaf, and are not meant.

Remove it. Only on NCCL does it do something else: there a collective holds up the device and a
barrier the host too, which matters if the host's own work (`compute`, externs) needs the order.

- [torch.distributed.barrier](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.edits import remove_statement
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.transports import Backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

RULE = Rule(
    "CL407",
    "needless-barrier",
    Severity.ADVICE,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    compute(1ms, "step")
    barrier()  # CL407
    all_reduce(x)
    compute(1ms, "step")
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    compute(1ms, "step")
    all_reduce(x)
    compute(1ms, "step")
""",
        """\
pattern main(x: float32[n], n = 8):
    broadcast(x, src=0)
    barrier()
    compute(1ms, "step")
""",
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x)
    if rank == 0:
        compute(1ms, "write the checkpoint")
    barrier()
    compute(1ms, "read the checkpoint")
""",
    ),
)

_MEETING = (Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_TO_ALL, Kind.BARRIER)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Statements all of whose barriers stand beside a collective, on all members."""
    program, calls = facts.program, facts.collectives
    if len(calls.start) < 3 or not (program.site_kind == Kind.BARRIER).any():
        return
    if facts.target.backend is Backend.NCCL and _host_works(facts):
        return
    before, after = _orders(facts, 1), _orders(facts, -1)
    instance = np.repeat(np.arange(len(calls.start) - 1), np.diff(calls.start))
    barrier = program.kind[calls.row] == Kind.BARRIER
    # Of two barriers side by side, only the second is needless.
    needless = (before | after)[instance]
    needed = np.zeros(len(program.sites), dtype=np.bool_)
    needed[program.site[calls.row[barrier & ~needless]]] = True
    told: set[int] = set()
    for place in np.flatnonzero(barrier & needless).tolist():
        row = int(calls.row[place])
        site = int(program.site[row])
        if not needed[site] and site not in told:
            told.add(site)
            yield _report(facts, row, row - 1 if before[instance[place]] else row + 1)


def _host_works(facts: Facts) -> bool:
    """Whether the pattern has work that a host may do while its device is busy."""
    return bool(np.isin(facts.program.site_kind, (Kind.COMPUTE, Kind.EXTERN)).any())


def _orders(facts: Facts, step: int) -> Array:
    """Per instance, whether the row before (after) each call orders what the instance does."""
    program, calls = facts.program, facts.collectives
    row, other = calls.row, calls.row - step
    inside = (other >= 0) & (other < len(program))
    other = np.where(inside, other, row)
    good = inside & (program.rank[other] == program.rank[row])
    good &= program.group[other] == program.group[row]
    meets = np.isin(program.kind[other], _MEETING if step > 0 else _MEETING[:-1])
    good &= meets & (program.nest[row] < 0) & (program.nest[other] < 0)
    blocking = ~program.site_async
    good &= blocking[program.site[row]] & blocking[program.site[other]]
    moves = np.minimum(program.operands.length, 1) if len(program.operands.length) else None
    if moves is not None:
        some = np.concatenate([[0], np.cumsum(moves)])
        first = np.maximum(program.first[other], 0)
        filled = some[first + program.count[other]] > some[first]
        good &= filled | (program.kind[other] == Kind.BARRIER)
    # Its calls have to be neighbours of the calls of one other instance.
    number = np.full(len(program), -1, dtype=np.int64)
    number[row] = np.repeat(np.arange(len(calls.start) - 1), np.diff(calls.start))
    start = calls.start[:-1]
    theirs = np.where(good, number[other], -1)
    low, high = np.minimum.reduceat(theirs, start), np.maximum.reduceat(theirs, start)
    return (low == high) & (low >= 0) & calls.whole


def _report(facts: Facts, row: int, other: int) -> Diagnostic:
    program = facts.program
    name = program.site_of(other).name
    message = f"this barrier orders nothing: all ranks meet in the {name} beside it"
    labels = (facts.label(row), facts.label(other, "ends on no rank before all have started it"))
    sure = facts.target.backend is not None or not _host_works(facts)
    fix = remove_statement(facts, program.site_of(row)) if sure else None
    notes = ("a barrier took 0.18 ms on gloo between two processes, 4.8 ms among eight",)
    return Diagnostic(
        RULE.code, message, labels, notes, "remove it", severity=Severity.ADVICE, fix=fix
    )
