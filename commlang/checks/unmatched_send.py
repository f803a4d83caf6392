"""A send that no recv meets (CL202).

Messages match in the order in which they are issued, for each channel: the group, the sending
rank, the receiving rank and the tag. What is left over on the sending side waits for ever on a
transport that does not buffer. gloo, NCCL and large MPI messages do not; small MPI messages may
vanish in a buffer, and the mistake shows only when they grow.

The notes say what the other rank has instead: no recv from this rank at all, one with another tag
or on another group, or too few. Add the recv, or drop the send; where a loop or a condition
decides how many there are, let both ranks compute it from the same numbers.

- Order and tags: [torch.distributed.send](https://docs.pytorch.org/docs/2.13/distributed.html)
- A send of the last stage that nobody received:
  [pytorch issue 38174](https://github.com/pytorch/pytorch/issues/38174)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.rule import Rule
from commlang.checks.unmatched import unmatched
from commlang.diagnostics import Severity
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL202",
    "unmatched-send",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
pattern main(x: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)  # CL202
""",
        """\
# world: 2
pattern main(x: float32[n], n = 8):
    if rank == 0:
        for i in range(3):
            send(x, dst=1)  # CL202
    else:
        for i in range(2):
            recv(x, src=0)
""",
    ),
    valid=(
        """\
# world: 2
pattern main(x: float32[n], n = 8):
    if rank == 0:
        for i in range(3):
            send(x, dst=1)
    else:
        for i in range(3):
            recv(x, src=0)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    yield from unmatched(facts, Kind.SEND, RULE.code)
