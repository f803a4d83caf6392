"""A name that is bound twice, or reserved (CL105).

A block binds a name once and never changes it, and a file defines or imports a name once. So what
a name stands for can be read off without following the order in which things happen. Reserved
words, such as `rank` and `world`, mean the same everywhere.

Choose another name. An inner block may bind a name anew; `NAME as OTHER` renames an import.

- [let](language.md#let), [reserved words](language.md#reserved-words)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL105",
    "duplicate-name",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    let k = 1
    let k = k + 1  # CL105
    fill(x, k)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    let k = 1
    let next_k = k + 1
    fill(x, next_k)
""",
    ),
)
