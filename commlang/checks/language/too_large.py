"""A pattern that grows beyond a limit (CL120).

A loop, a list or a chain of calls expands to more than the checker is willing to hold. The limits
guard against a mistake in a bound that would fill the memory of the machine; `--max-events` raises
the one on events.

Lower the parameters for the check: what goes wrong with 1,000 iterations mostly does with 10.

- [Limits](language.md#limits)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL120",
    "too-large",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    for i in range(10**9):  # CL120
        scale(x, 2)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    for i in range(10):
        scale(x, 2)
""",
    ),
)
