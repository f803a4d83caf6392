"""A temp that ends while an operation owns it (CL209).

A `temp` lives until its block ends, and its memory is used again after that. An operation that was
started with `async` inside the block and is joined only after it would read or write memory that
belongs to something else by then.

Declare the temp before the block, with one row for each operation under way, or wait inside.

- [torch.distributed, asynchronous operations](https://docs.pytorch.org/docs/2.13/distributed.html):
  the tensor must not be touched before the handle is waited for
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.handles import first_per_site
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL209",
    "temp-outlived",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    for i in range(2):
        temp inbox: like x
        fill(inbox, i)
        h[i] = async all_reduce(inbox)  # CL209
    wait(h)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    temp inbox: float32[2, n]
    for i in range(2):
        x -> inbox[i]
        h[i] = async all_reduce(inbox[i])
    wait(h)
""",
        """\
pattern main(x: float32[n], n = 8):
    for i in range(2):
        temp inbox: like x
        fill(inbox, i)
        h = async all_reduce(inbox)
        wait(h)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    program, handles, uses = facts.program, facts.program.handles, facts.handle_uses
    deadline = handles.deadline[~handles.is_wait]
    late = (uses.wait >= 0) & (program.key[np.maximum(uses.wait, 0)] >= deadline)
    for row in first_per_site(facts, uses.row[late]):
        message = f"a temp ends while the operation on {facts.event(row)} still owns it"
        labels = (facts.label(row), facts.label(int(program.wait[row]), "joined only here"))
        hint = "declare the temp outside the block, with an index per iteration"
        yield Diagnostic(RULE.code, message, labels, (), hint)
