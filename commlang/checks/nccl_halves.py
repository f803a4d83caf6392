"""One half of a message batched and the other not, on NCCL (CL256).

A message in a `parallel:` runs on the communicator of its group. One outside of a block runs on a
communicator of its two ranks, unless `init_process_group` was given `device_id=`. If one end stands
in a block and the other does not, they use different communicators and never meet.

Put both ends into blocks, or neither; a block may hold a single message. Or give
`init_process_group` a `device_id=`, and lint with `--nccl-init eager`.

- [ProcessGroupNCCL](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp),
  `pointToPoint`: which communicator a message takes
- [pytorch pull 160342](https://github.com/pytorch/pytorch/pull/160342)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.messages import per_pair
from commlang.checks.nccl_ring import severity
from commlang.checks.rule import Rule
from commlang.checks.unmatched import more
from commlang.diagnostics import Diagnostic, Severity
from commlang.transports import NcclInit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.checks.messages import Disagreement

RULE = Rule(
    "CL256",
    "nccl-halves",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], n = 8):
    if rank == 0:
        parallel:
            send(x, dst=1)  # CL256
    else:
        recv(x, src=0)
""",
    ),
    valid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], n = 8):
    parallel:
        if rank == 0:
            send(x, dst=1)
        else:
            recv(x, src=0)
""",
        """\
# world: 2
# backend: nccl
# nccl-init: eager
pattern main(x: float32[n], n = 8):
    if rank == 0:
        parallel:
            send(x, dst=1)
    else:
        recv(x, src=0)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements that would meet on one communicator."""
    if facts.lockstep:
        return
    for nccl in facts.nccl_models:
        if nccl.init is not NcclInit.LAZY or not len(nccl.messages.lone):
            continue
        send, recv = facts.messages.send, facts.messages.recv
        alone = np.zeros(len(facts.program), dtype=np.bool_)
        alone[nccl.messages.lone] = True
        batched = nccl.issue.batched
        wrong = (batched[send] != batched[recv]) & (alone[send] | alone[recv])
        for pair in per_pair(facts, wrong):
            yield _report(facts, pair, bool(batched[pair.send]))


def _report(facts: Facts, pair: Disagreement, send_batched: bool) -> Diagnostic:
    send, recv, many = pair
    inside, outside = (send, recv) if send_batched else (recv, send)
    message = (
        f"hangs on NCCL: the message from {facts.event(send)} to {facts.event(recv)} has one end "
        "in a `parallel:` and the other outside"
    )
    labels = (
        facts.label(inside, "on the communicator of the group"),
        facts.label(outside, "on a communicator of these two ranks"),
    )
    why = "without `device_id=` in init_process_group the two use different communicators"
    hint = "put both ends in `parallel:` blocks, or neither"
    notes = (why, *more(many, "messages"))
    return Diagnostic(RULE.code, message, labels, notes, hint, severity=severity(facts))
