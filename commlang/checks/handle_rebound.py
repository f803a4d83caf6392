"""A handle that is bound again before its wait (CL207).

A loop that starts an operation in each turn under one name loses all handles but the last: nothing
can wait for the others any more, and what they move is never known to have arrived.

Give the handle an index, `work[i] = async …`; a `wait(work)` joins all of them. Or wait inside the
loop, before the name is bound anew.

- [torch.distributed, asynchronous operations](https://docs.pytorch.org/docs/2.13/distributed.html)
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
    "CL207",
    "handle-rebound",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    for part in x.chunks(2):
        h = async all_reduce(part)  # CL207
    wait(h)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    for i, part in enumerate(x.chunks(2)):
        h[i] = async all_reduce(part)
    wait(h)
""",
        """\
pattern main(x: float32[n], n = 8):
    for part in x.chunks(2):
        h = async all_reduce(part)
        wait(h)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    program, uses = facts.program, facts.handle_uses
    for row in first_per_site(facts, uses.row[uses.rebound]):
        name = program.site_of(row).handle
        later = int(uses.again[np.flatnonzero(uses.row == row)[0]])
        labels = (facts.label(later), facts.label(row, "still outstanding"))
        message = f"handle `{name}` is bound again on {facts.event(later)} before its wait"
        variable = facts.innermost(later) or "i"
        hint = f"index it by the loop variable: `{name}[{variable}] = async …`"
        yield Diagnostic(RULE.code, message, labels, (), hint)
