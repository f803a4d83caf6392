"""A transfer whose ranks are not agreed on (CL127).

`x @ a -> y @ b` is one message, and every rank that runs the line must read the same two ranks: a
knows that it sends, b that it receives, the others that they do neither. With `rank` in it every
rank names others, and it would be unclear whose messages are meant.

Say all messages at once in a global view, `parallel for r in ranks: x @ r -> y @ (r + 1) % world`,
or write the two halves as `send` and `recv`.

- [Moving data](language.md#moving-data)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL127",
    "differing-rank",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    x @ rank -> y @ ranks.next  # CL127
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel for r in ranks:
        x @ r -> y @ (r + 1) % world
""",
    ),
)
