"""How rings of waits on NCCL are told: shared by the rules on its order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.ring import from_lowest_rank, told
from commlang.diagnostics import Severity
from commlang.transports import Backend, NcclInit

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.checks.facts import Facts
    from commlang.checks.hangs import Hang
    from commlang.checks.ring import Wait


def severity(facts: Facts) -> Severity:
    """An error for whoever runs on NCCL, a warning for whoever may."""
    return Severity.ERROR if facts.target.backend is Backend.NCCL else Severity.WARNING


def init_note(hang: Hang) -> tuple[str, ...]:
    """For which way of making communicators a finding stands, where it is not said otherwise."""
    if hang.nccl.init is NcclInit.EAGER:
        return ()
    return (
        "without `device_id=` in init_process_group, each pair of ranks makes a communicator for "
        "its unbatched messages at their first use",
    )


def ring_of(facts: Facts, hang: Hang) -> tuple[list[Wait], Callable[[int], str]]:
    """The ring from its lowest rank on, and how its i-th wait is told."""
    ring = from_lowest_rank(facts, hang.ring)

    def line(i: int) -> str:
        return told(facts, ring[i]) + _why(facts, hang, ring, i)

    return ring, line


def _why(facts: Facts, hang: Hang, ring: list[Wait], i: int) -> str:
    """Why what is awaited does not start, where program order does not say it."""
    awaited, blocker = ring[i].awaited, ring[(i + 1) % len(ring)].waiting
    points = hang.nccl.issue.points
    over = int(points.end[blocker])
    if awaited == blocker or 0 <= over <= int(points.start[awaited]):
        return ""
    if hang.nccl.together(awaited, blocker):
        return ""
    how = "its host issues only after" if hang.hosts else "is queued behind"
    return f", which {how} {facts.place(blocker)} `{facts.program.text(blocker)}`"
