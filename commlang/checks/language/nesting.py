"""Code that is nested too deeply (CL002).

Brackets, blocks and operators may be nested a hundred deep: more than a person would write, and
little enough that no text can exhaust the memory or the stack of the checker.

If a program wrote the file, let it bind parts of an expression with `let`, or put inner blocks
into a pattern of their own.

- [Limits](language.md#limits)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL002",
    "nesting",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    let k = ((((((((((((((((((((((((((((((((((((((((((((((((((
        (((((((((((((((((((((((((((((((((((((((((((((((((((  # CL002
        1
        )))))))))))))))))))))))))))))))))))))))))))))))))))
        ))))))))))))))))))))))))))))))))))))))))))))))))))
    fill(x, k)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    let k = ((1 + 2) * 3) % 4
    fill(x, k)
""",
    ),
)
