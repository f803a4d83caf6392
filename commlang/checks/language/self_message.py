"""A message from a rank to itself (CL117).

No backend of torch sends from a rank to itself: gloo raises an error, NCCL needs the send and the
recv in one batch, and torch checks for neither. In a ring of one rank `ranks.next` is the rank
itself.

Copy with `x -> y`, and send only where the peer is another rank.

- [torch.distributed, point-to-point communication](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL117",
    "self-message",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel for r in ranks:
        x @ r -> y @ 0  # CL117
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float32[world, n], n = 8):
    if rank == 0:
        x -> y[0]
    for r in ranks[1:]:
        x @ r -> y[r] @ 0
""",
    ),
)
