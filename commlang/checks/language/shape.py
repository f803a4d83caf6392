"""Shapes that do not fit together (CL112).

The two sides of a copy, the tensors of a collective, or an argument and its parameter differ in
their dimensions. A dimension that is just a name takes its value from the tensor that is given, so
an argument for it must say the same.

Cut the larger one with a slice, or declare the `temp` with `like`. Sizes that differ between ranks
are CL204 for messages and CL216 for collectives.

- [Parameters](language.md#parameters)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL112",
    "shape",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    x[: n // 2] -> y  # CL112
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    x[: n // 2] -> y[n // 2 :]
""",
    ),
)
