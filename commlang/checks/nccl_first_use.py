"""Communicators of pairs made in a circle on NCCL (CL258).

Where `init_process_group` was not given `device_id=`, an unbatched send or recv runs on a
communicator of its two ranks, made when the pair first needs it. Making it holds up the host until
both ranks are there, also for an asynchronous operation. If every rank of a ring first calls the
next one, no pair is ever complete, and nothing that comes later is issued.

Give `init_process_group` a `device_id=` (and lint with `--nccl-init eager`), put the messages in
`parallel:` blocks, which use the communicator of the group, or let the ranks meet their peers in
one order.

- [init_process_group](https://docs.pytorch.org/docs/2.13/distributed.html), `device_id`
- Reports: [pytorch issue 108378](https://github.com/pytorch/pytorch/issues/108378),
  [NCCL issue 584](https://github.com/NVIDIA/nccl/issues/584)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.nccl_ring import ring_of, severity
from commlang.checks.ring import among, ring_finding
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL258",
    "nccl-first-use",
    Severity.ERROR,
    invalid=(
        """\
# world: 3
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        work = async send(x, dst=1)  # CL258
        recv(y, src=2)
    if rank == 1:
        work = async send(x, dst=2)
        recv(y, src=0)
    if rank == 2:
        work = async send(x, dst=0)
        recv(y, src=1)
    wait(work)
""",
    ),
    valid=(
        """\
# world: 3
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
""",
        """\
# world: 3
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    for step in range(2):
        if rank == step:
            send(x, dst=step + 1)
        if rank == step + 1:
            recv(y, src=step)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The ring in which hosts wait for communicators to be made."""
    hang = facts.nccl_hang
    if hang is None or not hang.hosts:
        return
    ring, line = ring_of(facts, hang)
    notes = (
        "without `device_id=` in init_process_group, a pair of ranks makes a communicator at its "
        "first unbatched message, and the host waits for it even if the message is asynchronous",
    )
    yield ring_finding(
        facts,
        ring,
        RULE.code,
        f"hangs on NCCL as communicators are made: {among(facts, ring)}",
        notes=notes,
        help="give init_process_group a `device_id=` and lint with `--nccl-init eager`, put the "
        "messages in `parallel:` blocks, or let the ranks meet their peers in one order",
        severity=severity(facts),
        line=line,
    )
