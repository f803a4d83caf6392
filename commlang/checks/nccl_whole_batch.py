"""A batch that cannot start as a whole on NCCL (CL252).

The messages of a `parallel:` are one batch. The first time that ranks exchange messages, NCCL sets
up their connections before anything of the batch moves, and for that every peer must have posted
its half. If one of the peers can only do so after it has received another message of the same
batch, directly or over further ranks, nobody moves. Once the connections exist it runs; so it
hangs in the first iteration, or never.

Split the block: receive what others depend on in a block of its own, or post the later half early
with `async`.

- Report: [PiPPy issue 969](https://github.com/pytorch/PiPPy/issues/969), a skip connection
- [batch_isend_irecv](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.hangs import batch_hang
from commlang.checks.nccl_ring import ring_of
from commlang.checks.ring import SHOWN, among, ring_finding, told
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.checks.hangs import Hang
    from commlang.checks.ring import Wait
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL252",
    "nccl-whole-batch",
    Severity.WARNING,
    invalid=(
        """\
# world: 3
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        parallel:
            send(x, dst=1)
            send(y, dst=2)
    if rank == 1:
        parallel:
            recv(x, src=0)  # CL252
        parallel:
            send(x, dst=2)
    if rank == 2:
        parallel:
            recv(x, src=1)
            recv(y, src=0)
""",
    ),
    valid=(
        """\
# world: 3
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        if rank == 0:
            send(x, dst=1)
        if rank == 1:
            recv(x, src=0)
    parallel:
        if rank == 0:
            send(y, dst=2)
        if rank == 1:
            send(x, dst=2)
        if rank == 2:
            recv(x, src=1)
            recv(y, src=0)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The ring that closes if a batch moves nothing before all of it is posted."""
    hang = batch_hang(facts)
    if hang is None or facts.nccl_queue_hang is not None:
        return
    ring, _ = ring_of(facts, hang)
    notes = (
        "on first use of its connections a batch moves nothing before all its peers have posted "
        "their halves, and theirs wait for their peers in turn",
    )
    yield ring_finding(
        facts,
        ring,
        RULE.code,
        f"may hang on NCCL: {among(facts, ring)} if a batch starts as a whole",
        notes=notes,
        help="receive what others depend on in a block of its own, before the rest is posted",
        severity=RULE.severity,
        line=lambda i: told(facts, ring[i]) + _tied(facts, hang, ring[i]),
    )


def _tied(facts: Facts, hang: Hang, wait: Wait) -> str:
    """Over which messages a batch starts together with another, where more than one ties them."""
    way = hang.nccl.ties(wait.waiting, wait.awaited)
    if len(way) <= 2:
        return ""
    steps = [
        f"rank {facts.program.rank[one]} at {facts.place(one)} with rank "
        f"{facts.program.rank[other]} at {facts.place(other)}"
        for one, other in zip(way[:SHOWN:2], way[1:SHOWN:2], strict=True)
    ]
    more = ["…"] if len(way) > SHOWN else []
    return f", its batch being tied to that one by messages: {', '.join([*steps, *more])}"
