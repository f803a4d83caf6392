"""A parameter that differs between ranks (CL126).

The parameters of a call and the tables of a pattern are the same on every rank of the call. So a
pattern can be read, and decided, without knowing who calls it.

Write what differs with `rank` inside the called pattern; give it a table with an entry per rank if
the caller knows more.

- [Parameters](language.md#parameters)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL126",
    "differing-parameter",
    Severity.ERROR,
    invalid=(
        """\
pattern weigh(x: float32[n], factor = 1, n = 8):
    scale(x, factor)

pattern main(x: float32[n], n = 8):
    weigh(x, factor=rank)  # CL126
""",
    ),
    valid=(
        """\
pattern weigh(x: float32[n], factors: int[world] = [1 for r in ranks], n = 8):
    scale(x, factors[rank])

pattern main(x: float32[n], n = 8):
    weigh(x, factors=[r for r in ranks])
""",
    ),
)
