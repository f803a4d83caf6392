"""Branches of one `parallel:` that touch the same data (CL230).

The children of a `parallel:` run together and nothing is copied aside first: what a send reads
while a recv writes it may be the old value, the new one or a mixture. Views that alias count as
what they are, elements of one buffer. Accumulations of transfers, `x @ a -> y @ b, op=sum`, are
applied after the block, in the order of the text, and do not overlap.

Give one of the branches a buffer of its own, such as a `temp` into which it receives, or take one
of them out of the block.

- [batch_isend_irecv](https://docs.pytorch.org/docs/2.13/distributed.html), which is what
  `parallel:` becomes
- [Elemental issue 146](https://github.com/llnl/Elemental/issues/146): one buffer both ways
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.branches import conflicts
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.branches import Conflict
    from commlang.checks.facts import Facts

RULE = Rule(
    "CL230",
    "overlap",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    parallel:
        send(x, dst=ranks.next)  # CL230
        recv(x, src=ranks.prev)
""",
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        sequence:
            scale(x[: n // 2], 2)  # CL230
        sequence:
            x -> y
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
""",
        """\
pattern main(x: float32[n], n = 8):
    let half = n // 2
    parallel:
        send(x[:half], dst=ranks.next)
        recv(x[half:], src=ranks.prev)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements."""
    program = facts.program
    seen: set[tuple[int, int]] = set()
    for part in facts.regions.portions():
        inside = (program.nest[part] >= 0) & (program.count[part] > 0)
        rows = np.flatnonzero(inside) + part.start
        if not len(rows):
            continue
        for found in conflicts(facts, facts.regions.touches(rows)):
            pair = int(program.site[found.first]), int(program.site[found.second])
            if pair not in seen:
                seen.add(pair)
                yield _report(facts, found)


def _report(facts: Facts, found: Conflict) -> Diagnostic:
    program = facts.program
    name = program.buffer_of(int(program.operands.buffer[found.other])).name
    message = f"two branches of one `parallel:` touch the same data on {facts.event(found.first)}"
    labels = (facts.label(found.first), facts.label(found.second, "at the same time"))
    why = "one of them writes: what the other sees is left to chance"
    hint = f"give one of them a buffer of its own, such as `temp inbox: like {name}`"
    return Diagnostic(RULE.code, message, labels, (why,), hint)
