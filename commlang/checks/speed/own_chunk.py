"""An all_reduce of which each rank uses its own part (CL404).

All ranks get all of the result, and then each looks at another part of it. `reduce_scatter` is the
first half of an all_reduce, and leaves each rank with its part: half the bytes, and half the steps.
Sharded optimizers (ZeRO) live by that.

Write `reduce_scatter(part, x.chunks(world))`, or `reduce_scatter_single` if all parts are equal.

- [torch.distributed.reduce_scatter](https://docs.pytorch.org/docs/2.13/distributed.html)
- Rajbhandari and others, [ZeRO](https://arxiv.org/abs/1910.02054), 2020
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.rule import Rule
from commlang.checks.speed.costs import size
from commlang.checks.speed.data import bytes_of, first_instances, is_temp, touching
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

RULE = Rule(
    "CL404",
    "own-chunk-of-all-reduce",
    Severity.ADVICE,
    invalid=(
        """\
pattern main(part: float32[share(n, world, rank)], x: float32[n], n = 1Mi):
    temp total: like x
    x -> total
    all_reduce(total)  # CL404
    total.chunks(world)[rank] -> part
""",
    ),
    valid=(
        """\
pattern main(part: float32[share(n, world, rank)], x: float32[n], n = 1Mi):
    reduce_scatter(part, x.chunks(world))
""",
        """\
pattern main(part: float32[n // world], x: float32[n], n = 1Mi):
    temp total: like x
    x -> total
    all_reduce(total)
    total[: n // world] -> part
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Statements on a temp whose later reads part it among the ranks."""
    for _, rows in first_instances(facts, Kind.ALL_REDUCE):
        first = facts.program.first[rows]
        buffer = facts.program.operands.buffer[first]
        if (buffer == buffer[0]).all() and is_temp(facts, int(buffer[0])):
            reader = _reader(facts, rows, int(buffer[0]))
            if reader is not None:
                yield _report(facts, int(rows[0]), reader, len(rows))


def _reader(facts: Facts, rows: Array, buffer: int) -> int | None:
    """The first row that reads the result, if each rank reads about its share and no other's."""
    program = facts.program
    found = touching(facts, np.array([buffer]))
    turn = np.full(program.world, -1, dtype=np.int64)
    turn[program.rank[rows]] = rows
    mine = turn[program.rank[found.row]]
    found = found.pick((mine >= 0) & found.reads & (found.row > mine))
    if not len(found) or (program.kind[found.row] == Kind.ALL_REDUCE).any():
        return None
    rank = program.rank[found.row]
    low = np.full(program.world, np.iinfo(np.int64).max)
    high = np.full(program.world, -1, dtype=np.int64)
    np.minimum.at(low, rank, found.low)
    np.maximum.at(high, rank, found.high)
    low, high = low[program.rank[rows]], high[program.rank[rows]]
    length = program.operands.length[program.first[rows]]
    if (high < 0).any() or ((high - low) * len(rows) > length + len(rows)).any():
        return None
    order = np.argsort(low, kind="stable")
    apart = bool((high[order][:-1] <= low[order][1:]).all())
    return int(found.row[found.row > rows[0]].min()) if apart else None


def _report(facts: Facts, row: int, reader: int, members: int) -> Diagnostic:
    whole = int(bytes_of(facts, np.array([row]))[0])
    message = "all_reduce gives all ranks the whole result, and each uses a part of its own"
    labels = (facts.label(row), facts.label(reader, "its part"))
    each = whole * (members - 1) // members
    notes = (f"half of what a rank sends would do: {size(each)} less in each call",)
    hint = "write `reduce_scatter(part, …)`, with what rank r uses as entry r of the list"
    return Diagnostic(RULE.code, message, labels, notes, hint, severity=Severity.ADVICE)
