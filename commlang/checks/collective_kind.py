"""Members of a group that call different collectives (CL212).

The i-th call on a group by each of its members is one collective; nothing but the number pairs
them. If one rank's third call is an `all_reduce` and another's is a `barrier`, gloo and NCCL run
both protocols against each other: the job hangs, and the lines at which it hangs are often far
from the mistake.

Call the collectives of a group in one order on all of its ranks. What only some ranks do belongs
on a group of their own. When several groups disagree only their first fault is told, since what
follows it is its consequence.

- Reports: [pytorch issue 38174](https://github.com/pytorch/pytorch/issues/38174),
  [NCCL issue 195](https://github.com/NVIDIA/nccl/issues/195)
- `TORCH_DISTRIBUTED_DEBUG=DETAIL` compares calls while the job runs:
  [torch.distributed, debugging](https://docs.pytorch.org/docs/2.13/distributed.html)
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
    "CL212",
    "collective-kind",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    if rank == 1:
        barrier()  # CL212
        all_reduce(x)
    else:
        all_reduce(x)
        barrier()
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    group back = ranks[1:]
    if rank > 0:
        all_reduce(x, group=back)
    barrier()
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The groups whose first fault this is."""
    why = "the calls pair by number, so wrong ones meet and the job hangs"
    hint = "call the collectives of a group in one order on all of its ranks"
    yield from disagreements(facts, RULE.code, "kind", why, hint)
