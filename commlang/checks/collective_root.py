"""A rooted collective with different roots (CL213).

`broadcast`, `reduce`, `gather` and `scatter` have one root, and every member must name the same
one. gloo and NCCL do not compare them: each rank waits for the root that it was given, which may
wait for another itself, and the job hangs.

`src` and `dst` are ranks of the pattern, the same number on every rank. A place in a group is
turned into one by `group[i]`, or given as `group_src=` or `group_dst=`.

- [torch.distributed.broadcast](https://docs.pytorch.org/docs/2.13/distributed.html): `src` is a
  global rank
- Global against group rank: [pytorch issue 91535](https://github.com/pytorch/pytorch/issues/91535)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.collectives import disagreements
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL213",
    "collective-root",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    broadcast(x, src=rank % 2)  # CL213
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    mesh node = 2, local = 2
    broadcast(x, src=local[0], group=local)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The groups whose first fault this is."""
    why = "each rank waits for another root, and the job hangs"
    yield from disagreements(facts, RULE.code, "root", why)
