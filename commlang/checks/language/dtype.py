"""Dtypes that do not fit together (CL113).

The tensors of one operation differ in dtype, or an argument's is not that of its parameter. No
backend casts; torch refuses some of these calls and lets others reinterpret bytes.

Copy into a `temp` of the right dtype first: the arrow casts. Or let the pattern take the dtype as a
parameter, `x: kind[n], kind = float32`.

- [Dtype parameters](language.md#dtype-parameters)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL113",
    "dtype",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float16[world, n], n = 8):
    all_gather_into_tensor(y, x)  # CL113
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float16[world, n], n = 8):
    temp h: float16[n]
    x -> h
    all_gather_into_tensor(y, h)
""",
    ),
)
