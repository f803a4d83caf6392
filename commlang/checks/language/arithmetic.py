"""Arithmetic without a result (CL110).

A division by zero, an int beyond 64 bits, a fraction where an int is needed, a negative duration.
Ints never wrap round and nothing is rounded silently, since a wrong size would be a wrong pattern.
The note names the rank on which it happens.

Use `//` where rounding down is meant. Where a size must divide, say so with `require`, so that the
mistake is told in your words.

- [Expressions](language.md#expressions)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL110",
    "arithmetic",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    fill(x[: n // (world - 4)], 0)  # CL110
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    require n % world == 0, "n must divide among the ranks"
    fill(x[: n / world], 0)
    fill(x[: n // 3], 1)
""",
    ),
)
