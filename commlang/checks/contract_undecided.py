"""A contract that is neither proven nor refuted (CL241).

It may hold or not: the proof knows no more. Mostly the contract says of an extern, or of a
`compute`, what it does, which is known to none but whoever wrote it; or it says `not` or `!=` of
contents, which may hold for some data and not for others; or the slices of a large pattern cut its
tensors into more regions than are looked at. The finding says which. `--strict` makes it an error.

State what the pattern itself does: compare with what the extern was given, or with what another
rank has. `commlang run` checks the contract on real data all the same.

- [Satisfiability with uninterpreted functions](https://en.wikipedia.org/wiki/Uninterpreted_function):
  what can be said of a function of which nothing is known
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
    "CL241",
    "contract-undecided",
    Severity.WARNING,
    invalid=(
        """\
extern relu(x: read float32[n], y: write float32[n])

pattern main(x: float32[n], y: float32[n], n = 8):
    ensure y == max(old(x), 0)  # CL241
    relu(x, y)
""",
    ),
    valid=(
        """\
extern relu(x: read float32[n], y: write float32[n])

pattern main(x: float32[n], y: float32[n], n = 8):
    ensure y == y @ 0
    broadcast(x, src=0)
    relu(x, y)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per contract."""
    yield from (found for found in facts.contracts if found.code == RULE.code)
