"""Hangs in NCCL's order of issue (CL250).

NCCL runs the operations of one communicator one after the other, in the order in which they are
issued, asynchronous ones too: `wait` holds up what comes after it, it does not let operations pass
one another. So two ranks that both start with an asynchronous send to the other, or that post their
receives first as MPI programs do, wait for each other's second operation for ever. All of this is
fine on gloo, where posted operations progress independently. Small messages may pass through
NCCL's internal buffers, so that the hang comes with the size.

Put messages that cross in one `parallel:`: it becomes one batch, inside of which everything
progresses. Or let one rank of each pair send first and the other receive first, or give messages
that run beside collectives a group of their own.

- [batch_isend_irecv](https://docs.pytorch.org/docs/2.13/distributed.html)
- [NCCL: point-to-point
  communication](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/p2p.html)
- Reports: [pytorch issue 109401](https://github.com/pytorch/pytorch/issues/109401),
  [pytorch issue 172668](https://github.com/pytorch/pytorch/issues/172668),
  [torchrec pull 4472](https://github.com/meta-pytorch/torchrec/pull/4472) (by size)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.implementation import WHY
from commlang.checks.nccl_ring import init_note, ring_of, severity
from commlang.checks.ring import among, ring_finding
from commlang.checks.rule import Rule
from commlang.diagnostics import Severity
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.checks.ring import Wait
    from commlang.diagnostics import Diagnostic

ORDER = "NCCL runs what one communicator is given in the order of issue, asynchronous or not"

RULE = Rule(
    "CL250",
    "nccl-order",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    inbox = async recv(y, src=1 - rank)  # CL250
    outbox = async send(x, dst=1 - rank)
    wait(inbox)
    wait(outbox)
""",
        """\
# world: 2
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        work = async recv(y, src=1)  # CL250
        all_reduce(x)
    else:
        all_reduce(x)
        work = async send(y, dst=0)
    wait(work)
""",
    ),
    valid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        recv(y, src=1 - rank)
        send(x, dst=1 - rank)
""",
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        work = async recv(y, src=1)
        send(x, dst=1)
    else:
        work = async send(y, dst=0)
        recv(x, src=0)
    wait(work)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The ring that closes because streams serve operations in order."""
    hang = facts.nccl_hang
    if hang is None or hang.hosts:
        return
    ring, line = ring_of(facts, hang)
    verb = "wait" if hang.certain else "may wait"
    message = f"hangs on NCCL: {among(facts, ring, verb)}"
    notes = (ORDER, *init_note(hang), *(() if hang.certain else (WHY,)))
    yield ring_finding(
        facts,
        ring,
        RULE.code,
        message,
        notes=notes,
        help=_advice(facts, ring),
        severity=severity(facts),
        line=line,
    )


def _beside_sequences(facts: Facts, ring: list[Wait]) -> bool:
    """Whether some messages are in a `parallel:` already, which is no batch."""
    nests = facts.program.nest[[wait.waiting for wait in ring]]
    return bool(len(facts.program.nests.key) and facts.program.nests.look_up(nests)[0].any())


def _advice(facts: Facts, ring: list[Wait]) -> str:
    rows = [row for wait in ring for row in (wait.waiting, wait.awaited)]
    kinds = {Kind(int(facts.program.kind[row])) for row in rows}
    if all(kind.is_message for kind in kinds):
        if _beside_sequences(facts, ring):
            return (
                "move each `sequence:` out of the `parallel:`: with one among its children, the "
                "messages of a block are not one batch"
            )
        return (
            "put the messages that cross in one `parallel:`, which is one batch on NCCL, or let "
            "one rank of each pair send first and the other receive first"
        )
    if all(kind.is_collective for kind in kinds):
        return "call the collectives in one order on all ranks"
    return (
        "issue the message on the same side of the collective on both ranks, or give the messages "
        "a group of their own: `group side = ranks`"
    )
