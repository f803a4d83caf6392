"""Pattern calls without an end (CL125).

A pattern calls itself, directly or through others, and never comes to a world or to parameters in
which it stops.

Let each call run on a smaller group or with a smaller number, and guard it with an `if` that
becomes false.

- [Calling a pattern](language.md#calling-a-pattern)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL125",
    "endless-calls",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x)
    main(x)  # CL125
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x)
    if world > 1:
        group half = [r for r in ranks if r * 2 // world == rank * 2 // world]
        main(x, group=half)
""",
    ),
)
