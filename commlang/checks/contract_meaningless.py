"""A contract that has no meaning here (CL242).

A contract is an expression that is evaluated on every rank, with the shapes that its tensors have
there. It may index out of range, name a rank that the world does not have, or set a tensor against
one of another shape, perhaps in some worlds only: then it says nothing, true or false.

Write shapes that fit on every rank: `share(n, world, r)` is the length of chunk `r`. What holds
for some ranks only goes into a condition: `ensure x == (old(y) @ 0 if rank == 1 else old(x))`.

- [Shapes of collectives](https://docs.pytorch.org/docs/2.13/distributed.html#collective-functions)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL242",
    "contract-meaningless",
    Severity.ERROR,
    invalid=(
        """\
pattern main(part: float32[n], whole: float32[n], n = 8):
    ensure whole == concat(old(part) @ r for r in ranks)  # CL242
    part -> whole
""",
    ),
    valid=(
        """\
pattern main(part: float32[n], whole: float32[world * n], n = 8):
    ensure whole == concat(old(part) @ r for r in ranks)
    all_gather_into_tensor(whole, part)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per contract."""
    yield from (found for found in facts.contracts if found.code == RULE.code)
