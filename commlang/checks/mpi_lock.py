"""An asynchronous collective that may be held up by MPI's lock (CL265).

torch calls MPI under one lock per process. A collective runs on a worker thread and holds the lock
until it is over; sends, recvs and the waits for them hold it in the caller's thread. So nothing is
sent while an asynchronous collective waits for other ranks, and it does not begin while the rank
waits for a message: which comes first is up to the threads, on each rank anew. This pattern hangs
for one of the orders that are tried: collectives first on all ranks, on none, on all but one, on
one alone. (Other orders exist, so a clean answer for MPI is not a proof where asynchronous
collectives run beside messages.)

The backend over mpi4py that commlang brings has no such lock. Which of the two runs is up to the
torch that is installed, so the check is for both.

Wait for the collective before other communication on its rank, or start it after that, on all ranks
alike. Collectives of different groups share the lock too.

- [ProcessGroupMPI](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/ProcessGroupMPI.cpp),
  `pgGlobalMutex_`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.collectives import ranks_text
from commlang.checks.ring import among, from_lowest_rank, ring_finding, waits
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity
from commlang.transports import Backend, mpi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL265",
    "mpi-lock",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
# backend: mpi
pattern main(x: float32[n], y: float32[n], n = 8):
    work = async all_reduce(x)
    if rank == 0:
        send(y, dst=1)  # CL265
        wait(work)
    else:
        wait(work)
        recv(y, src=0)
""",
    ),
    valid=(
        """\
# world: 2
# backend: mpi
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        send(y, dst=1)
    else:
        recv(y, src=0)
    work = async all_reduce(x)
    scale(y, 2)
    wait(work)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The first ring that closes for an order in which the threads may take the lock."""
    wanted = facts.target.backend is Backend.MPI and facts.everything_meets
    if not wanted or facts.deadlock or not len(mpi.deferred(facts.events)):
        return
    for first in mpi.orders(facts.events):
        graph = mpi.graph(facts.events, first)
        cycle = graph.cycle()
        if cycle is None:
            continue
        ring = from_lowest_rank(facts, waits(graph.edges, cycle))
        yield ring_finding(
            facts,
            ring,
            RULE.code,
            f"may hang on MPI, which runs one call at a time: {among(facts, ring, 'may wait')}",
            notes=(_when(first.tolist(), facts.program.world),),
            help="wait for the collective before other communication, or start it after that, on "
            "all ranks alike",
        )
        return


def _when(first: list[int], world: int) -> str:
    """In which order of the threads it hangs."""
    if len(first) == world:
        return "if the collective takes the lock at once, nothing that is issued later starts"
    if not first:
        return "if others keep the lock, the collective begins only where it is waited for"
    return (
        f"if the collective takes the lock at once on {ranks_text(first)}, where nothing that is "
        "issued later starts then, and only where it is waited for elsewhere"
    )
