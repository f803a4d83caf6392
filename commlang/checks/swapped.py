"""Two buffers swapped between collectives of one group (CL217).

The calls of a group pair by number, and nobody compares what they are called with. Here one rank
calls a collective with buffer A and later one of the same kind with B, while another rank has B
first and A later: each A is combined with a B, and if the sizes agree nothing tells. gloo, NCCL
and torch's DETAIL mode accept it; the values are wrong. It happens where ranks issue gradients in
the order in which they become ready. Rows of one tensor and buffers that differ by role, such as
what a root sends and a leaf receives, are not meant: the names have to cross. Nor is a pattern
whose contracts are proven: it does what it says.

Issue the collectives of a group in one order on all of its ranks, asynchronous ones too.

- Reports: [horovod issue 100](https://github.com/horovod/horovod/issues/100),
  [sglang issue 31117](https://github.com/sgl-project/sglang/issues/31117) (two streams)
- [torch.distributed: collective functions](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.program.sorting import combine
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program import Program
    from commlang.program.columns import Array

RULE = Rule(
    "CL217",
    "swapped-buffers",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
pattern main(weight: float32[n], bias: float32[n], n = 8):
    if rank == 0:
        all_reduce(weight)
        all_reduce(bias)
    else:
        all_reduce(bias)  # CL217
        all_reduce(weight)
""",
    ),
    valid=(
        """\
# world: 2
pattern main(weight: float32[n], bias: float32[n], n = 8):
    all_reduce(weight)
    all_reduce(bias)
""",
        """\
# world: 2
pattern main(ours: float32[n], theirs: float32[n], n = 8):
    if rank == 0:
        all_reduce(ours)
        all_reduce(ours)
    else:
        all_reduce(theirs)
        all_reduce(theirs)
""",
    ),
)

_BY_NAME = (
    Kind.ALL_REDUCE,
    Kind.REDUCE,
    Kind.BROADCAST,
    Kind.ALL_GATHER,
    Kind.REDUCE_SCATTER,
    Kind.ALL_TO_ALL,
)
"""Kinds whose members all play one part, or at least name one buffer."""


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements that pair crosswise."""
    program, calls = facts.program, facts.collectives
    if len(calls.start) < 3 or not facts.everything_meets:
        return
    name = _names(program, calls.row)
    first = calls.start[:-1]
    differ = np.flatnonzero(
        (np.minimum.reduceat(name, first) != np.maximum.reduceat(name, first))
        & np.isin(program.kind[calls.row[first]], _BY_NAME)
    )
    if not len(differ) or _meant(facts):
        return
    crossed: dict[tuple[int, ...], tuple[int, int]] = {}
    seen: set[tuple[int, int]] = set()
    for instance in differ.tolist():
        span = slice(int(calls.start[instance]), int(calls.start[instance + 1]))
        names, rows = name[span], calls.row[span]
        other = int(np.flatnonzero(names != names[0])[0])
        one, two = int(rows[0]), int(rows[other])
        place = (int(calls.group[instance]), int(program.kind[one]), other)
        sites = int(program.site[one]), int(program.site[two])
        earlier = crossed.get((*place, int(names[other]), int(names[0])))
        if earlier is not None and sites not in seen:
            seen |= {sites, (int(program.site[earlier[0]]), int(program.site[earlier[1]]))}
            yield _report(facts, earlier, (one, two))
        crossed.setdefault((*place, int(names[0]), int(names[other])), (one, two))


def _meant(facts: Facts) -> bool:
    """Whether contracts are proven: then what the pattern says of its results, it does."""
    body = facts.program.definition.node.body
    return any(isinstance(s, ast.Ensure) for s in body) and not facts.contracts


def _names(program: Program, row: Array) -> Array:
    """Per call a number for the declarations of its first and last operand."""
    operands = program.operands.buffer
    first, count = program.first[row], program.count[row]
    if not len(operands):
        return np.zeros(len(row), dtype=np.int64)
    ends = (np.maximum(first, 0), np.maximum(first + count - 1, 0))
    blocks = [
        np.searchsorted(program.buffer_base, operands[np.minimum(at, len(operands) - 1)], "right")
        for at in ends
    ]
    return combine([(block, len(program.buffers) + 1) for block in blocks])


def _report(facts: Facts, earlier: tuple[int, int], later: tuple[int, int]) -> Diagnostic:
    program = facts.program
    names = [
        program.buffer_of(int(program.operands.buffer[int(program.first[row])])).name
        for row in earlier
    ]
    kind = program.site_of(earlier[0]).name
    ranks = facts.event(earlier[0]), facts.event(earlier[1])
    message = (
        f"{kind}: `{names[0]}` on {ranks[0]} is paired with `{names[1]}` on {ranks[1]}, and the "
        "other way round"
    )
    labels = (
        facts.label(earlier[1], f"`{names[1]}` on {ranks[1]}"),
        facts.label(earlier[0], f"meets `{names[0]}` on {ranks[0]}"),
        facts.label(later[0], f"and `{names[1]}` here"),
        facts.label(later[1], f"meets `{names[0]}`"),
    )
    why = "no backend compares names: the values are combined crosswise, silently"
    hint = "issue the collectives of a group in one order on all of its ranks"
    return Diagnostic(RULE.code, message, labels, (why,), hint)
