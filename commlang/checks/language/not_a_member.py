"""A rank that uses a group without being in it (CL118).

The operation, the pattern call or `g.index` runs on a rank that is no member of the group. In torch
such a call is a silent no-op: nothing is moved, nothing is said, and the data stay what they were.

Guard it with `if rank in g:`.

- [Groups and meshes](language.md#groups-and-meshes)
- [torch.distributed.new_group](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL118",
    "not-a-member",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    group evens = ranks[0::2]
    all_reduce(x, group=evens)  # CL118
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    group evens = ranks[0::2]
    if rank in evens:
        all_reduce(x, group=evens)
""",
    ),
)
