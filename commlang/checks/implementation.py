"""Ends or hangs as the implementation of a rooted collective likes (CL220).

The ring of waits closes only because members of a broadcast, reduce, gather or scatter wait for
more than the data needs. Such a collective promises no more than that its data has arrived: a
broadcast's leaf waits for the root, and a reduce's root for the leaves. Who else waits for whom
depends on the backend, the algorithm, the number of ranks and the size: on gloo with 4 ranks, the
root of a broadcast waits for ranks 1 and 2, and rank 1 for rank 3. What runs today hangs with
another size or version.

Put the operations around the collective in one order on all ranks, as if it were a barrier.

- MPI 4.1, section 6.1: a collective
  [may or may not synchronise](https://www.mpi-forum.org/docs/mpi-4.1/mpi41-report/node129.htm)
- [torch.distributed: collective functions](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.ring import among, from_lowest_rank, ring_finding
from commlang.checks.ring_advice import suggest
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

WHY = "a rooted collective promises only the data dependence between root and leaf"

RULE = Rule(
    "CL220",
    "depends-on-implementation",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        broadcast(x, src=0)  # CL220
        send(y, dst=1)
    else:
        recv(y, src=0)
        broadcast(x, src=0)
""",
    ),
    valid=(
        """\
# world: 2
pattern main(x: float32[n], y: float32[n], n = 8):
    broadcast(x, src=0)
    if rank == 0:
        send(y, dst=1)
    else:
        recv(y, src=0)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """A ring that closes only if a rooted collective waits for all its members."""
    ring = facts.deadlock.possible
    if not ring:
        return
    ring = from_lowest_rank(facts, ring)
    message = f"depends on the implementation: {among(facts, ring, 'may wait')}"
    yield ring_finding(facts, ring, RULE.code, message, notes=(WHY,), help=suggest(facts, ring))
