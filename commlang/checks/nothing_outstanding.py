"""A wait with nothing to wait for (CL208).

`wait(work[i])` names one operation, and there is none: it was never started on this rank, or an
earlier `wait` has joined it already. In torch the second `wait()` on a handle is an error or
returns at once, depending on the backend; either way the line does not do what it says.

Drop the wait, correct its index, or start the operation under the same condition. `wait(work)`,
without an index, joins whatever is outstanding, possibly nothing, and is never wrong.

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
    "CL208",
    "nothing-outstanding",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    for i, part in enumerate(x.chunks(2)):
        h[i] = async all_reduce(part)
    for i in range(3):
        wait(h[i])  # CL208
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    for i, part in enumerate(x.chunks(2)):
        h[i] = async all_reduce(part)
    wait(h[0])
    wait(h)
    wait(h)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    program, handles = facts.program, facts.program.handles
    exact = handles.row[handles.is_wait & ~handles.wildcard]
    if not len(exact):
        return
    for row in first_per_site(facts, np.setdiff1d(exact, facts.handle_uses.wait)):
        name = program.site_of(row).handle
        message = f"nothing is outstanding at `{program.text(row)}` on {facts.event(row)}"
        hint = f"`wait({name})` joins whatever is outstanding, possibly nothing"
        yield Diagnostic(RULE.code, message, (facts.label(row),), (), hint)
