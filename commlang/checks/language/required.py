"""A requirement that does not hold (CL124).

The pattern says with `require` what it needs of its parameters and its world, and this is not so
for those it is checked with.

Choose other parameters or another world; or, if the requirement asks too much, relax it.

- [Contracts](language.md#contracts)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL124",
    "required",
    Severity.ERROR,
    invalid=(
        """\
# world: 3
pattern main(x: float32[n], n = 8):
    require world % 2 == 0, "ranks work in pairs"  # CL124
    all_reduce(x)
""",
    ),
    valid=(
        """\
# world: 4
pattern main(x: float32[n], n = 8):
    require world % 2 == 0, "ranks work in pairs"
    all_reduce(x)
""",
    ),
)
