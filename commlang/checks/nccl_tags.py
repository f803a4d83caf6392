"""Messages that swap on NCCL, which ignores tags (CL254).

NCCL has no tags: the i-th send of a rank to another meets the i-th recv there, in the order of
issue. Here the tags say otherwise, so two messages arrive in each other's buffers: silently wrong
values if their sizes agree, a hang or worse if not. gloo and MPI honour tags.

Receive in the order in which the messages are sent, or give one kind of message a group of its own.

- [torch.distributed.send](https://docs.pytorch.org/docs/2.13/distributed.html), `tag`, and the note
  on it for NCCL
- [NCCL: ncclSend](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/p2p.html), which
  takes a peer and no tag
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.messages import per_pair
from commlang.checks.nccl_ring import severity
from commlang.checks.rule import Rule
from commlang.checks.unmatched import more
from commlang.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.checks.messages import Disagreement

RULE = Rule(
    "CL254",
    "nccl-tags",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        parallel:
            send(x, dst=1, tag=1)
            send(y, dst=1, tag=2)
    else:
        parallel:
            recv(y, src=0, tag=2)  # CL254
            recv(x, src=0, tag=1)  # CL254
""",
    ),
    valid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        parallel:
            send(x, dst=1, tag=1)
            send(y, dst=1, tag=2)
    else:
        parallel:
            recv(x, src=0, tag=1)
            recv(y, src=0, tag=2)
""",
        """\
# world: 2
# backend: gloo
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 0:
        parallel:
            send(x, dst=1, tag=1)
            send(y, dst=1, tag=2)
    else:
        parallel:
            recv(y, src=0, tag=2)
            recv(x, src=0, tag=1)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements that meet although their tags part them."""
    if not facts.program.tag.any():
        return
    for nccl in facts.nccl_models[:1]:
        met, meant = nccl.messages, facts.tagged
        wrong = (meant.partner[met.recv] != met.send) & (meant.partner[met.recv] >= 0)
        for pair in per_pair(facts, wrong, met):
            yield _report(facts, pair)


def _report(facts: Facts, pair: Disagreement) -> Diagnostic:
    send, recv, many = pair
    tags = int(facts.program.tag[send]), int(facts.program.tag[recv])
    message = (
        f"messages swap on NCCL, which ignores tags: {facts.event(recv)} receives tag {tags[0]} "
        f"where it asks for {tags[1]}"
    )
    labels = (
        facts.label(recv, f"asks for tag {tags[1]}"),
        facts.label(send, f"arrives there, with tag {tags[0]}"),
    )
    why = "messages between two ranks meet in the order of issue there"
    hint = "receive in the order of the sends, or give one kind of message a group of its own"
    notes = (why, *more(many, "messages"))
    return Diagnostic(RULE.code, message, labels, notes, hint, severity=severity(facts))
