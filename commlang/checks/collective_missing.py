"""A collective that some members never call (CL211).

A collective needs every member of its group: the world if no `group=` is given. If one rank leaves
the call out, by a condition on `rank`, a loop of fewer turns or an early end, all others wait for
it for ever. It is the most frequent of all hangs in training scripts: a checkpoint or an
evaluation on rank 0 only, one batch more on one rank than on the others.

Let every rank of the group call it the same number of times. If some stand aside on purpose, make
a group of those that take part, and run it there.

- Reports: [Lightning issue 19783](https://github.com/Lightning-AI/pytorch-lightning/issues/19783),
  [pytorch issue 38174](https://github.com/pytorch/pytorch/issues/38174)
- [torch.distributed.new_group](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.collectives import faults_of, ranks_text, which
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL211",
    "collective-missing",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    if rank < 3:
        all_reduce(x)  # CL211
""",
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x)
    for step in range(rank):
        all_reduce(x)  # CL211
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    group front = ranks[:3]
    if rank in front:
        all_reduce(x, group=front)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The groups whose first fault this is."""
    for fault in faults_of(facts, RULE.code):
        yield _report(facts, fault.instance)


def _report(facts: Facts, instance: int) -> Diagnostic:
    program, calls = facts.program, facts.collectives
    rows = calls.row[calls.start[instance] : calls.start[instance + 1]]
    there = set(program.rank[rows].tolist())
    members = program.groups.entries[int(calls.group[instance])].members
    absent = [member for member in members if member not in there]
    one, first = len(absent) == 1, int(rows[0])
    message = (
        f"{program.site_of(first).name} on {facts.event(first)} waits for {ranks_text(absent)}, "
        f"which {'never calls' if one else 'never call'} it"
    )
    turn = int(calls.turn[instance])
    count = "no call" if not turn else f"{turn} call{'s' if turn > 1 else ''}"
    verb = "makes" if one else "make"
    notes = (
        which(facts, instance),
        f"{ranks_text(absent)} {verb} {count} on this group in all",
    )
    hint = "every rank of the group must make the call; if some stand aside, run it on a group"
    return Diagnostic(RULE.code, message, (facts.label(first),), notes, hint)
