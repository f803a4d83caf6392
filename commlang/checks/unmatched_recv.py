"""A recv that no send meets (CL203).

Messages match in the order in which they are issued, for each channel: the group, the sending
rank, the receiving rank and the tag. A recv without its send waits for ever on every transport.

The notes say what the other rank has instead: no send to this rank at all, one with another tag
or on another group, or too few. Add the send, or let both ranks decide by the same condition
whether there is a message.

- Order and tags: [torch.distributed.recv](https://docs.pytorch.org/docs/2.13/distributed.html)
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
    "CL203",
    "unmatched-recv",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
pattern main(x: float32[n], n = 8):
    if rank == 0:
        recv(x, src=1)  # CL203
""",
        """\
# world: 3
pattern main(x: float32[n], n = 8):
    # Both neighbours are asked, but rank 0 has only one that sends.
    if rank == 0:
        recv(x, src=1)
        recv(x, src=2)  # CL203
    elif rank == 1:
        send(x, dst=0)
""",
    ),
    valid=(
        """\
# world: 3
pattern main(x: float32[n], n = 8):
    if rank == 0:
        recv(x, src=1)
        recv(x, src=2)
    else:
        send(x, dst=0)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    yield from unmatched(facts, Kind.RECV, RULE.code)
