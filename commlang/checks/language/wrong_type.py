"""A value of the wrong kind (CL103).

An int stands where a tensor is needed, a list where a number is, a tensor's contents where a
condition is. Control flow, sizes and ranks never depend on the contents of tensors: that is what
allows a pattern to be decided before it runs.

Say how many, not what: a parameter or a table carries what the program that calls the pattern
knows, the same on every rank.

- [Expressions](language.md#expressions)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL103",
    "wrong-type",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    if x[0] > 0:  # CL103
        all_reduce(x)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], converged = false, n = 8):
    if not converged:
        all_reduce(x)
""",
    ),
)
