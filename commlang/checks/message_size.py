"""A message that does not fit its buffer (CL204).

Both ends of a message must name the same number of elements. If the message is larger than the
buffer, gloo aborts the receiving process with a signal that Python cannot catch, and NCCL hangs or
writes past the end; if it is smaller, the rest of the buffer stays as it was, and nobody is told.

Cut both ends from the same expression: `share(n, world, i)` is the length of chunk `i` of
`x.chunks(world)`, on whichever rank it is asked. Where sizes are known only to the sender, make
them a table parameter, which is the same on all ranks.

- NCCL on mismatched sizes: [NCCL issue 479](https://github.com/NVIDIA/nccl/issues/479)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.messages import per_pair
from commlang.checks.rule import Rule
from commlang.checks.unmatched import more
from commlang.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL204",
    "message-size",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
pattern main(x: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
    else:
        recv(x[:4], src=0)  # CL204
""",
    ),
    valid=(
        """\
# world: 3
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        for r in ranks[1:]:
            send(x.chunks(world)[r], dst=r)
    else:
        recv(y[: share(n, world, rank)], src=0)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements."""
    program, send, recv = facts.program, facts.messages.send, facts.messages.recv
    if not len(send):
        return
    sent = program.operands.length[program.first[send]]
    room = program.operands.length[program.first[recv]]
    for pair in per_pair(facts, sent != room):
        yield _report(facts, *pair)


def _report(facts: Facts, send: int, recv: int, many: int) -> Diagnostic:
    program = facts.program
    sent, room = (int(program.operands.length[program.first[row]]) for row in (send, recv))
    message = (
        f"message of {sent} elements from {facts.event(send)} into a buffer of {room} "
        f"on {facts.event(recv)}"
    )
    why = (
        "gloo aborts the receiving process; NCCL hangs or corrupts"
        if sent > room
        else "the rest of the buffer stays as it was, silently"
    )
    labels = (facts.label(recv, f"{room} elements"), facts.label(send, f"{sent} elements"))
    return Diagnostic(RULE.code, message, labels, (why, *more(many, "messages")))
