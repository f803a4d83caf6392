"""An index or a slice outside of what it cuts (CL111).

Nothing is cut to fit: an index or a slice beyond the end is an error, and so is a computed index
that is negative, which is a mistake more often than not. (A literal one, `x[-1]`, counts from the
end.) The note names the rank on which it happens, often the first or the last.

Let the neighbour wrap round, `(rank - 1) % world` or `ranks.prev`, or leave the ranks at the ends
out with `if`.

- [Views](language.md#views)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL111",
    "outside",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    let c = x.chunks(world)
    scale(c[rank - 1], 2)  # CL111
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    let c = x.chunks(world)
    scale(c[(rank - 1) % world], 2)
""",
    ),
)
