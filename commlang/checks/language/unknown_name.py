"""A name that is not defined (CL101).

Nothing that is visible at this place has that name. A name is visible after its statement, inside
its block: what a loop or an `if` binds ends with it. Handles are names of a kind of their own,
which only `wait` can say.

The help names what is spelt alike, or the line where the name is bound out of sight. Bind it with
`let` before the block, import it, or make it a parameter.

- [Statements](language.md#statements)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL101",
    "unknown-name",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(y)  # CL101
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    let y = x[: n // 2]
    all_reduce(y)
""",
    ),
)
