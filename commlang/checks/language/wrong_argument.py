"""An argument that is too many, missing or unknown (CL102).

The call does not fit the parameters of what it calls: an argument that there is none for, one that
is given twice or not at all, a preset that sets what is no parameter. Operations take torch's
arguments under torch's names, but for `async_op`, which is written `handle = async …`.

The help lists what there is.

- [Operations](language.md#operations)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL102",
    "wrong-argument",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x, reduction=max)  # CL102
""",
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    x @ 0 -> y  # CL102
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    all_reduce(x, op=max)
    x @ 0 -> y @ 1
""",
    ),
)
