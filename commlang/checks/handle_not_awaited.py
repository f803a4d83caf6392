"""A handle that is never waited for (CL206).

`work = async …` starts an operation and goes on. Until a `wait(work)` its data belong to the
operation: what it reads must not be changed, and what it writes is not there yet. gloo cancels a
send whose handle is dropped before the recv is posted, so the other rank waits for ever.

Wait for every handle, on every rank that bound it. `wait(work)` without an index joins all that
are outstanding under that name, possibly none, so it may stand after a loop or a condition.

- [torch.distributed, asynchronous operations](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.handles import first_per_site
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL206",
    "handle-not-awaited",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    h = async all_reduce(x)  # CL206
""",
        """\
pattern main(x: float32[n], n = 8):
    h = async all_reduce(x)  # CL206
    if rank > 0:
        wait(h)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    if world > 1:
        h = async all_reduce(x)
    wait(h)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    program, uses = facts.program, facts.handle_uses
    for row in first_per_site(facts, uses.row[(uses.wait < 0) & ~uses.rebound]):
        name = program.site_of(row).handle
        message = f"handle `{name}` is never waited for on {facts.event(row)}"
        why = "its data may still be moving, and gloo drops a send whose handle is dropped"
        yield Diagnostic(RULE.code, message, (facts.label(row),), (why,), f"add `wait({name})`")
