"""Ends only if MPI buffers messages (CL221).

A standard send of MPI may end as soon as its message is buffered, or only once the matching recv
has started: the library decides, by the size of the message and the memory that is left. This
pattern hangs if it does not buffer. The finding says how many messages a channel (a sender, a
receiver, a group and a tag) must hold for it to end. MPI calls such a program unsafe: it runs with
small messages and hangs when they grow, or on another library.

Put messages that cross in one `parallel:`, post one of them with `async`, or let one rank of the
ring receive first.

- MPI 4.1, [semantics of point-to-point
  communication](https://www.mpi-forum.org/docs/mpi-4.1/mpi41-report/node71.htm): unsafe programs
- Found by tools for MPI: [the MPI Bugs Initiative](https://gitlab.com/MpiBugsInitiative/MpiBugsInitiative)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.deadlock import buffered
from commlang.checks.ring import among, from_lowest_rank, ring_finding
from commlang.checks.ring_advice import suggest
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity
from commlang.transports import Backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL221",
    "needs-buffers",
    Severity.ERROR,
    invalid=(
        """\
# backend: mpi
pattern main(x: float32[n], y: float32[n], n = 8):
    send(x, dst=ranks.next)  # CL221
    recv(y, src=ranks.prev)
""",
    ),
    valid=(
        """\
# backend: mpi
pattern main(x: float32[n], y: float32[n], n = 8):
    work = async send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
    wait(work)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """A ring that buffers would break, on a transport that may have them."""
    ring = facts.deadlock.certain
    capacity = facts.capacity if ring and facts.target.backend is Backend.MPI else None
    if capacity is None:
        return
    ring = from_lowest_rank(facts, ring)
    message = f"depends on whether MPI buffers: {among(facts, ring, 'may wait')}"
    yield ring_finding(
        facts, ring, RULE.code, message, notes=buffered(capacity), help=suggest(facts, ring)
    )
