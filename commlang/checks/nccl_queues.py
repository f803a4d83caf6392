"""Communicators in different orders on NCCL (CL251).

Operations on different communicators run on streams of their own, but on one device: if it has no
room for both, it runs them one after the other, in the order in which they were issued. Two
communicators that share two or more ranks must therefore be used in one order on all of them, or
each device waits for an operation that the other has queued second. NVIDIA's documentation asks for
it; whether it hangs depends on sizes, on the number of channels and on what else the device runs.
(Groups are made in one order on all ranks by commlang itself. A communicator that is made at its
first use makes this a hang for sure, since the hosts wait too.)

Issue the operations in one order on all ranks, or wait for those of one communicator before those
of the other are issued.

- [NCCL: using multiple communicators
  concurrently](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/communicators.html)
- Reports: [NCCL issue 195](https://github.com/NVIDIA/nccl/issues/195),
  [pytorch issue 175145](https://github.com/pytorch/pytorch/issues/175145)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.nccl_ring import ring_of
from commlang.checks.ring import among, ring_finding
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL251",
    "nccl-communicator-order",
    Severity.WARNING,
    invalid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    group side = ranks
    if rank == 0:
        one = async all_reduce(x)  # CL251
        two = async all_reduce(y, group=side)
    else:
        two = async all_reduce(y, group=side)
        one = async all_reduce(x)
    wait(one)
    wait(two)
""",
    ),
    valid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    group side = ranks
    one = async all_reduce(x)
    two = async all_reduce(y, group=side)
    wait(one)
    wait(two)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The ring that closes if a device runs its communicators one after the other."""
    hang = facts.nccl_queue_hang
    if hang is None:
        return
    ring, line = ring_of(facts, hang)
    notes = (
        "operations on communicators that share ranks need one order on all of them: a device "
        "without room for both runs them as they were issued",
    )
    yield ring_finding(
        facts,
        ring,
        RULE.code,
        f"may hang on NCCL: {among(facts, ring)} if a device runs one communicator at a time",
        notes=notes,
        help="issue the operations in one order on all ranks, or wait for those of one group "
        "before those of the other are issued",
        severity=RULE.severity,
        line=line,
    )
