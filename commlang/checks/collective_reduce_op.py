"""A reduction with different ops (CL214).

No backend compares the reduce ops of the members. Each rank combines what it gets by its own op,
so the result is a mixture of sums and maxima, and nobody is told.

Choose the op by something that is the same on all ranks: a parameter, not `rank`.

- [torch.distributed.ReduceOp](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.collectives import disagreements
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL214",
    "collective-reduce-op",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    if rank == 3:
        all_reduce(x, op=max)  # CL214
    else:
        all_reduce(x)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], op = sum, n = 8):
    if rank == 3:
        all_reduce(x, op)
    else:
        all_reduce(x, op=op)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The groups whose first fault this is."""
    why = "no backend compares it: the result is garbage, silently"
    yield from disagreements(facts, RULE.code, "reduce op", why)
