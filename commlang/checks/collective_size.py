"""A collective on different sizes (CL216).

The members must agree on how many elements move: equal sizes in the flat forms, and in the list
forms and `all_to_all` entry j of rank i must fit what rank j gives to or takes from rank i, so the
table of output splits is the transpose of that of the input splits. No backend compares them: gloo
aborts the process or leaves a tail untouched, NCCL hangs or corrupts.

Compute sizes from what is the same on all ranks: `share(n, world, i)` for chunk `i`, or a table
parameter `counts: int[world, world]`, of which rank i sends by row i and receives by column i.

- Uneven inputs: [pytorch issue 130515](https://github.com/pytorch/pytorch/issues/130515),
  [NCCL issue 479](https://github.com/NVIDIA/nccl/issues/479)
- [torch.distributed.all_to_all_single](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.collectives import faults_of, size_text, which
from commlang.checks.rule import Rule
from commlang.checks.sizes import elements, unequal_pair
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL216",
    "collective-size",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x[: rank + 1])  # CL216
""",
        """\
# world: 2
pattern main(x: float32[3], y: float32[3]):
    all_to_all_single(x, y, output_split_sizes=[2, 1], input_split_sizes=[2, 1])  # CL216
""",
    ),
    valid=(
        """\
# world: 2
pattern main(x: float32[3], y: float32[3], counts: int[2, 2] = [[2, 1], [1, 2]]):
    all_to_all_single(
        x,
        y,
        output_split_sizes=[counts[r, rank] for r in ranks],
        input_split_sizes=[counts[rank, r] for r in ranks],
    )
""",
    ),
)


_WHY = "gloo aborts the process or leaves a tail untouched; NCCL hangs or corrupts"


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The groups whose first fault this is."""
    for fault in faults_of(facts, RULE.code):
        if facts.program.kind[fault.row] == Kind.ALL_TO_ALL:
            yield _exchange(facts, fault.instance)
        else:
            yield _sizes(facts, fault.instance, fault.row)


def _sizes(facts: Facts, instance: int, row: int) -> Diagnostic:
    calls = facts.collectives
    start = int(calls.start[instance])
    other = int(calls.row[start])
    if other == row:
        other = int(calls.row[start + 1])
    sizes = [size_text(facts, r) for r in (other, row)]
    message = (
        f"{facts.program.site_of(row).name}: sizes disagree: {sizes[0]} on {facts.event(other)}, "
        f"{sizes[1]} on {facts.event(row)}"
    )
    labels = (facts.label(row, sizes[1]), facts.label(other, sizes[0]))
    return Diagnostic(RULE.code, message, labels, (_WHY, which(facts, instance)))


def _exchange(facts: Facts, instance: int) -> Diagnostic:
    """What one member of an all_to_all sends to another, and what that one expects."""
    calls = facts.collectives
    rows = calls.row[calls.start[instance] : calls.start[instance + 1]]
    pair = unequal_pair(facts.program, rows)
    assert pair is not None, "the sizes of this instance disagree"
    receiver, sender, expected, sent = int(rows[pair[0]]), int(rows[pair[1]]), *pair[2:]
    message = (
        f"{facts.program.site_of(receiver).name}: {facts.event(sender)} sends {elements(sent)} to "
        f"{facts.event(receiver)}, which expects {expected}"
    )
    labels = tuple(facts.label(row, size_text(facts, row)) for row in (receiver, sender))
    return Diagnostic(RULE.code, message, labels, (_WHY, which(facts, instance)))
