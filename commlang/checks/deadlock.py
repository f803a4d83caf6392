"""Ranks that wait for one another in a ring (CL201).

Every rank in the ring waits in an operation that cannot end before another rank has started
something, and that rank never gets there, since it waits in the same ring. Under rendezvous
semantics (no buffering) the answer is exact for the given parameters: without wildcard receives
and data-dependent branches the matching is fixed, so a pattern ends if and only if every operation
is matched and the order of events has no cycle. gloo never buffers: a ring of blocking sends hangs
there at 4 bytes. A transport that buffers may let small messages pass; if buffers can help at all,
a note says how many messages a channel would have to hold, and large ones still hang.

Put messages that cross in one `parallel:`, post one of them with `async`, or let one rank of the
ring do the later operation first. Call the collectives of different groups in one order on all
ranks. The help names the lines.

- Why one execution decides: Siegel and Avrunin,
  [Verification of halting properties for MPI programs](https://doi.org/10.1145/1178625.1178626)
- [NCCL issue 479](https://github.com/NVIDIA/nccl/issues/479): two ranks that both send first
- [batch_isend_irecv](https://docs.pytorch.org/docs/2.13/distributed.html), which is what
  `parallel:` becomes
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.checks.ring import Wait, among, from_lowest_rank, ring_finding, waits
from commlang.checks.ring_advice import suggest
from commlang.checks.ring_fix import exchange_fix
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity
from commlang.transports import Backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

__all__ = ["RULE", "Wait", "check", "waits"]

RULE = Rule(
    "CL201",
    "deadlock",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    send(x, dst=ranks.next)  # CL201
    recv(y, src=ranks.prev)
""",
        """\
# world: 2
pattern main(x: float32[n], y: float32[n], n = 8):
    group a = ranks
    if rank == 0:
        all_reduce(x, group=a)  # CL201
        all_reduce(y)
    else:
        all_reduce(y)
        all_reduce(x, group=a)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
""",
        """\
# world: 2
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
        recv(y, src=1)
    else:
        recv(y, src=0)
        send(x, dst=0)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The deadlock of a program, if there is one that no implementation avoids."""
    ring = facts.deadlock.certain
    if not ring:
        return
    capacity = facts.capacity
    if capacity is not None and facts.target.backend is Backend.MPI:
        return  # it depends on whether MPI buffers, which is another finding
    ring = from_lowest_rank(facts, ring)
    message = f"deadlock: {among(facts, ring)}"
    found = ring_finding(
        facts, ring, RULE.code, message, notes=buffered(capacity), help=suggest(facts, ring)
    )
    yield replace(found, fix=exchange_fix(facts, ring))


def buffered(capacity: int | None) -> tuple[str, ...]:
    """Whether a transport that buffers would let the program end, as a note."""
    if capacity is None:
        return ()
    if not capacity:
        return ("it ends only if the transport buffers enough messages",)
    if capacity == 1:
        return ("it ends only if the transport buffers one message per channel",)
    return (f"it ends only if the transport buffers {capacity:,} messages per channel",)
