"""Communication of elements that do not lie side by side (CL119).

Operations that communicate need contiguous data. torch checks some of them on the rank that calls,
which fails while its peer hangs; others copy, or move what lies in between.

Copy into a `temp` with the arrow, which takes any view, and send that. Rows of a matrix are
contiguous, columns are not.

- [Views](language.md#views)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL119",
    "not-contiguous",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n, n], n = 8):
    all_reduce(x[:, 0])  # CL119
""",
    ),
    valid=(
        """\
pattern main(x: float32[n, n], n = 8):
    temp column: float32[n]
    x[:, 0] -> column
    all_reduce(column)
    column -> x[:, 0]
""",
    ),
)
