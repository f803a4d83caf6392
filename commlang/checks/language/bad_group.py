"""A group that its members do not agree on (CL122).

A group is a list of ranks that all of its members name alike, without repeating one. Here it is
empty, names a rank twice, or rank a counts rank b as a member while b names others: the members
would create, and wait in, different communicators.

Compute the list from something that is equal on all members, such as `r % 2 == rank % 2`, or lay
the ranks out with `mesh`.

- [Groups and meshes](language.md#groups-and-meshes)
- [torch.distributed.new_group](https://docs.pytorch.org/docs/2.13/distributed.html) must be entered
  by all ranks with the same list
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL122",
    "bad-group",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    group pair = [rank, (rank + 1) % world]  # CL122
    all_reduce(x, group=pair)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    group pair = [rank - rank % 2, rank - rank % 2 + 1]
    all_reduce(x, group=pair)
""",
    ),
)
