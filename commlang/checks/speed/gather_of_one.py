"""An all_gather that one rank reads (CL405).

All ranks receive everybody's data, and only one looks at them. `gather` brings them to that rank
alone: the others send theirs and are done, and need no memory for the rest.

Write `gather` with that rank as `dst=`.

- [torch.distributed.gather](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.rule import Rule
from commlang.checks.speed.costs import size
from commlang.checks.speed.data import bytes_of, first_instances, is_temp, touching
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.program.sorting import distinct
from commlang.transports.support import LOCAL, backings, supports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL405",
    "all-gather-for-one",
    Severity.ADVICE,
    invalid=(
        """\
pattern main(whole: float32[world * n], x: float32[n], n = 1Mi):
    temp parts: float32[world * n]
    all_gather_single(parts, x)  # CL405
    if rank == 0:
        parts -> whole
""",
    ),
    valid=(
        """\
pattern main(whole: float32[world * n], x: float32[n], n = 1Mi):
    if rank == 0:
        gather(x, whole.chunks(world), dst=0)
    else:
        gather(x, dst=0)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Statements whose output is a temp that a single member reads."""
    program, ops = facts.program, facts.program.operands
    for _, rows in first_instances(facts, Kind.ALL_GATHER):
        each = [int(program.first[row]) + i for row in rows for i in range(program.count[row] - 1)]
        buffers = distinct(ops.buffer[each])
        if not all(is_temp(facts, buffer) for buffer in buffers.tolist()):
            continue
        found = touching(facts, buffers)
        found = found.pick(found.reads & (program.kind[found.row] != Kind.ALL_GATHER))
        reader = distinct(program.rank[found.row])
        if len(reader) == 1 and reader[0] in program.rank[rows] and _can_gather(facts, rows[0]):
            yield _report(facts, int(rows[0]), int(found.row.min()), len(rows))


def _can_gather(facts: Facts, row: int) -> bool:
    """Whether gather takes the dtype, and lists all of one length, as it must."""
    program = facts.program
    first, count = int(program.first[row]), int(program.count[row])
    lengths = program.operands.length[first : first + count - 1]
    dtype = program.site_of(row).dtype
    name = str(facts.target.backend)
    asked = [name] if name in backings() and name != LOCAL else ["gloo", "nccl"]
    devices = {"nccl": "cuda"}
    return bool((lengths == lengths[0]).all()) and all(
        supports(each, "gather", dtype and dtype.name, device=devices.get(each, "cpu"))
        for each in asked
    )


def _report(facts: Facts, row: int, reader: int, members: int) -> Diagnostic:
    program = facts.program
    rank = int(program.rank[reader])
    message = f"{program.site_of(row).name} gives all ranks what only rank {rank} reads"
    labels = (facts.label(row), facts.label(reader, f"rank {rank}"))
    part = int(bytes_of(facts, np.array([row]))[0]) // (members + 1)
    saved = size(part * (members - 1))
    notes = (f"each of the {members - 1} other ranks would receive {saved} less in each call",)
    hint = f"write `gather(…, dst={rank})`, with the list on rank {rank} only"
    return Diagnostic(RULE.code, message, labels, notes, hint, severity=Severity.ADVICE)
