"""Three or more communicators of the same ranks in flight on NCCL (CL257).

Each communicator launches kernels of its own, which wait on the device for their peers. With many
in flight at once the device's queues and resources may run out, so that the one whose peer is
running is not: ranks hang although they issue everything in one order. It was reported with three
communicators over the same ranks.

Wait for one before the next is issued, or run the operations on one group: there they keep their
order and no kernel waits for another.

- [RCCL issue 2191](https://github.com/ROCm/rccl/issues/2191)
- [NCCL: using multiple communicators
  concurrently](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/communicators.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.transports import Backend
from commlang.transports.sharing import crowds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.transports.sharing import Crowd

RULE = Rule(
    "CL257",
    "nccl-in-flight",
    Severity.WARNING,
    invalid=(
        """\
# backend: nccl
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    one = async all_reduce(x)
    two = async all_reduce(y, group=a)
    three = async all_reduce(z, group=b)  # CL257
    wait(one)
    wait(two)
    wait(three)
""",
    ),
    valid=(
        """\
# backend: nccl
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    one = async all_reduce(x)
    two = async all_reduce(y)
    three = async all_reduce(z)
    wait(one)
    wait(two)
    wait(three)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement that is one too many."""
    if facts.target.backend is not Backend.NCCL or facts.nccl_hang or facts.nccl_queue_hang:
        return
    seen: set[int] = set()
    for crowd in crowds(facts.nccl_models[0]):
        site = int(facts.program.site[crowd.row])
        if site not in seen:
            seen.add(site)
            yield _report(facts, crowd)


def _report(facts: Facts, crowd: Crowd) -> Diagnostic:
    program = facts.program
    labels = [
        f"`{program.groups.entries[int(program.group[row])].label}`"
        for row in (*crowd.others, crowd.row)
    ]
    message = (
        f"may hang on NCCL: operations on groups {labels[0]}, {labels[1]} and {labels[2]} are in "
        f"flight together on {facts.event(crowd.row)}"
    )
    why = "their kernels wait on one device for the same peers, and its queues may run out"
    hint = "wait for one before the next is issued, or run them on one group"
    places = (
        facts.label(crowd.row),
        *(facts.label(row, "still in flight") for row in crowd.others),
    )
    return Diagnostic(RULE.code, message, places, (why,), hint, severity=RULE.severity)
