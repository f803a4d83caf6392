"""A first batch that some ranks of the group take no part in, on NCCL (CL255).

The messages of a `parallel:` run on the communicator of their group. If `init_process_group` was
not given `device_id=`, it is made by the group's first collective or batch, and making it takes all
ranks of the group. torch's documentation asks that all of them take part in the batch if it comes
first, and calls anything else undefined; in fact those that are there wait for the others. Here
some ranks never use the communicator, so the batch hangs unless something made it before.

Call a collective on the group first (a `barrier(group=…)` at the start), make a group of only those
ranks that exchange messages, or give `init_process_group` a `device_id=` and lint with
`--nccl-init eager`.

- [batch_isend_irecv](https://docs.pytorch.org/docs/2.13/distributed.html), the note
- [pytorch pull 74701](https://github.com/pytorch/pytorch/pull/74701): the rules
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.collectives import ranks_text
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.program.sorting import combine, distinct
from commlang.transports import Backend, NcclInit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

RULE = Rule(
    "CL255",
    "nccl-first-batch",
    Severity.WARNING,
    invalid=(
        """\
# world: 3
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        if rank == 0:
            send(x, dst=1)  # CL255
        if rank == 1:
            recv(y, src=0)
""",
    ),
    valid=(
        """\
# world: 3
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    barrier()
    parallel:
        if rank == 0:
            send(x, dst=1)
        if rank == 1:
            recv(y, src=0)
""",
        """\
# world: 3
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    group front = [0, 1]
    if rank in front:
        parallel:
            send(x, dst=1 - rank, group=front)
            recv(y, src=1 - rank, group=front)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per group."""
    target = facts.target
    if target.backend is not Backend.NCCL or target.nccl_init is not NcclInit.LAZY:
        return
    nccl = facts.nccl_models[0]
    if not facts.everything_meets or len(nccl.messages.lone):
        return
    batched = nccl.issue.batched
    first = _first_batches(facts, np.flatnonzero(batched))
    if not len(first):
        return
    program = facts.program
    users = program.is_collective | batched
    key = distinct(program.group[users].astype(np.int64) * program.world + program.rank[users])
    for row in first.tolist():
        entry = program.groups.entries[int(program.group[row])]
        here = set((key[key // program.world == program.group[row]] % program.world).tolist())
        absent = sorted(set(entry.members) - here)
        if absent:
            yield _report(facts, row, entry.label, absent)


def _first_batches(facts: Facts, rows: Array) -> Array:
    """The first batched row of each group, on the lowest rank that has one."""
    program = facts.program
    if not len(rows):
        return rows
    group = program.group[rows].astype(np.int64)
    order = np.argsort(combine([(group, len(program.groups.entries))]), kind="stable")
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = group[order][1:] != group[order][:-1]
    return rows[order[fresh]]


def _report(facts: Facts, row: int, group: str, absent: list[int]) -> Diagnostic:
    who = ranks_text(absent)
    message = (
        f"may hang on NCCL: the first batch on group `{group}` on {facts.event(row)}, which {who} "
        f"never use{'s' * (len(absent) == 1)}"
    )
    why = "a group's communicator is made at its first use, and that takes all of its ranks"
    hint = (
        "call a collective on the group first, make a group of the ranks that exchange messages, "
        "or give init_process_group a `device_id=` and lint with `--nccl-init eager`"
    )
    label = facts.label(row)
    return Diagnostic(RULE.code, message, (label,), (why,), hint, severity=RULE.severity)
