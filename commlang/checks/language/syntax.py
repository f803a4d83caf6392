"""Text that is no pattern file (CL001).

The text does not follow the grammar: a bracket or a string that is not closed, an indentation that
fits no block, a keyword where a name must stand, a word too many. The file is not looked at any
further, since all that follows would be guesswork.

The finding points at the first place that cannot be read. If it looks right, look at the line
above it: what is missing there shows only here. `commlang fmt` shows how lines belong together.

- [The grammar in short](language.md#the-grammar-in-short)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL001",
    "syntax",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x  # CL001
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x)
""",
    ),
)
