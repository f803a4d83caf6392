"""Rings of waits, which is what a cycle says to a reader: shared by the rules on deadlocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.diagnostics import Diagnostic, Severity
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Label
    from commlang.program.constraints import Edges

SHOWN = 8
"""Waits of a cycle that are printed in full; a longer one is cut in the middle."""


@record
class Wait:
    """One step of the ring: `waiting` cannot end before `awaited`, on another rank, starts."""

    waiting: int
    awaited: int


def waits(edges: Edges, cycle: list[int]) -> list[Wait]:
    """The cycle as waits, each rank followed by the one that it waits for.

    Edges run from cause to effect, so the cycle is walked backwards; an edge into a hub and the
    one out of it are one wait.
    """
    steps: list[Wait] = []
    effect = -1
    for edge in [*reversed(cycle), *reversed(cycle)]:
        if edges.effect[edge] >= 0:
            effect = int(edges.effect[edge])
        if edges.cause[edge] >= 0 and effect >= 0:
            step = Wait(effect, int(edges.cause[edge]))
            if steps and step == steps[0]:
                break
            steps.append(step)
            effect = -1
    return steps


def from_lowest_rank(facts: Facts, ring: list[Wait]) -> list[Wait]:
    """The ring, told from its lowest rank on."""
    start = min(range(len(ring)), key=lambda i: int(facts.program.rank[ring[i].waiting]))
    return ring[start:] + ring[:start]


def among(facts: Facts, ring: list[Wait], verb: str = "wait") -> str:
    """`3 ranks wait for one another`, or `rank 1 waits for itself`; `verb` may be `may wait`."""
    ranks = sorted({int(facts.program.rank[wait.waiting]) for wait in ring})
    if len(ranks) > 1:
        return f"{len(ranks)} ranks {verb} for one another"
    return f"rank {ranks[0]} {verb}{'s' * (verb == 'wait')} for itself"


def ring_finding(
    facts: Facts,
    ring: list[Wait],
    code: str,
    message: str,
    *,
    notes: tuple[str, ...] = (),
    help: str | None = None,
    severity: Severity = Severity.ERROR,
    line: Callable[[int], str] | None = None,
) -> Diagnostic:
    """A ring as a finding. `line(i)` tells its i-th wait, by default with `told`."""
    line = line or (lambda i: told(facts, ring[i]))
    explained = ("\n".join(_lines(len(ring), line)), *facts.origin(ring[0].waiting), *notes)
    extra: dict[str, object] = {"cycle": [_step(facts, wait) for wait in ring]}
    labels = _labels(facts, ring)
    return Diagnostic(code, message, labels, explained, help, severity=severity, extra=extra)


def _labels(facts: Facts, ring: list[Wait]) -> tuple[Label, ...]:
    program = facts.program
    labels: list[Label] = []
    sites: set[int] = set()
    for wait in ring:
        site, rank = int(program.site[wait.waiting]), int(program.rank[wait.waiting])
        if site not in sites and len(labels) < 4:
            sites.add(site)
            labels.append(facts.label(wait.waiting, f"rank {rank} waits here"))
    return tuple(labels)


def _lines(count: int, line: Callable[[int], str]) -> list[str]:
    if count <= SHOWN:
        return [line(i) for i in range(count)]
    head, tail = range(SHOWN // 2), range(count - 2, count)
    middle = f"… {count - len(head) - len(tail):,} more ranks in the same way …"
    return [*map(line, head), middle, *map(line, tail)]


def told(facts: Facts, wait: Wait) -> str:
    """Who waits where, for whom to come where."""
    program = facts.program
    row, other = wait.waiting, wait.awaited
    text = (
        f"{facts.event(row)} waits at {facts.place(row)} in `{program.text(row)}` "
        f"for {facts.event(other)} to reach {facts.place(other)} `{program.text(other)}`"
    )
    joined = int(program.wait[row])
    if joined >= 0:
        text += f" (joined at {facts.place(joined)})"
    return text


def _step(facts: Facts, wait: Wait) -> dict[str, object]:
    program = facts.program
    return {
        "rank": int(program.rank[wait.waiting]),
        "waits_at": program.where(wait.waiting),
        "for_rank": int(program.rank[wait.awaited]),
        "to_reach": program.where(wait.awaited),
    }
