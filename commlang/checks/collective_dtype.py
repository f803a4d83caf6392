"""A collective on different dtypes (CL215).

No backend compares the dtypes of the members. Equal sizes in bytes are reinterpreted silently;
unequal ones abort the process on gloo, and hang or corrupt on NCCL.

Cast into a `temp` of one dtype on the ranks that have another, or take the dtype from a parameter.

- Mixed precision across ranks: [pytorch issue 77562](https://github.com/pytorch/pytorch/issues/77562)
- [torch.distributed, collective functions](https://docs.pytorch.org/docs/2.13/distributed.html)
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
    "CL215",
    "collective-dtype",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], h: float16[n], n = 8):
    if rank == 3:
        all_reduce(h)  # CL215
    else:
        all_reduce(x)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], h: float16[n], n = 8):
    if rank == 3:
        x -> h
        all_reduce(h)
        h -> x
    else:
        temp cast: like h
        x -> cast
        all_reduce(cast)
        cast -> x
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The groups whose first fault this is."""
    why = "no backend compares it: bytes are reinterpreted, or gloo aborts"
    yield from disagreements(facts, RULE.code, "dtype", why)
