"""Something that cannot stand here (CL104).

Each part of it is right, but not at this place: `async` inside `parallel:`, which waits for all its
children anyway; `rank` inside `E @ r`, where it could be this rank or rank r; what speaks of the
contents of tensors outside a contract; an operation or a pattern used as a value; an extern that
does not say what it does with a tensor.

The help says what to write instead.

- [Moving data](language.md#moving-data),
  [async, wait and handles](language.md#async-wait-and-handles)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL104",
    "wrong-place",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        h = async send(x, dst=ranks.next)  # CL104
        recv(y, src=ranks.prev)
    wait(h)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
""",
    ),
)
