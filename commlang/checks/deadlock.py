"""Deadlock (CL201): ranks that wait for one another in a ring.

Every rank in the ring waits in an operation that cannot end before another rank has started
something, and that rank never gets there, since it waits in the same ring. Under rendezvous
semantics (no buffering) the answer is exact for the given parameters: without wildcard receives
and data-dependent branches the matching is fixed, so a pattern ends if and only if every operation
is matched and the order of events has no cycle (Siegel and Avrunin, 2007). A pattern that hangs
only without buffers may seem to work for small messages; it hangs for large ones.

If the ring closes only because members of a rooted collective wait for more than the data needs
(CL220), the pattern depends on the implementation: which members of a broadcast, reduce, gather
or scatter wait for which others differs between backends, sizes and algorithms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlang.diagnostics import Diagnostic
from commlang.operations import Kind
from commlang.program.constraints import rendezvous
from commlang.program.context import loop_variables
from commlang.program.cycles import find_cycle

if TYPE_CHECKING:
    from commlang.checks.facts import Facts
    from commlang.program import Program
    from commlang.program.constraints import Edges

CODES = ("CL201", "CL220")
SHOWN = 8
"""Waits of a cycle that are printed in full; a longer one is cut in the middle."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One step of the ring: `waiting` cannot end before `awaited`, on another rank, starts."""

    waiting: int
    awaited: int


def check(facts: Facts) -> list[Diagnostic]:
    """The deadlock of a program, if there is one."""
    program, messages, calls, points = (
        facts.program,
        facts.messages,
        facts.collectives,
        facts.points,
    )
    edges = rendezvous(program, messages, calls, points)
    cycle = find_cycle(points, edges)
    if cycle is None:
        return []
    loose = rendezvous(program, messages, calls, points, rooted_meet=False)
    certain = find_cycle(points, loose)
    if certain is not None:
        return [_report(facts, waits(loose, certain), "CL201")]
    return [_report(facts, waits(edges, cycle), "CL220")]


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


def _report(facts: Facts, ring: list[Wait], code: str) -> Diagnostic:
    program = facts.program
    start = min(range(len(ring)), key=lambda i: int(program.rank[ring[i].waiting]))
    ring = ring[start:] + ring[:start]
    ranks = sorted({int(program.rank[w.waiting]) for w in ring})
    what = f"deadlock: {len(ranks)} rank{'s' if len(ranks) > 1 else ''} wait for one another"
    if code == "CL220":
        what = f"depends on the implementation: {len(ranks)} ranks may wait for one another"
    labels = [facts.label(ring[0].waiting, f"rank {program.rank[ring[0].waiting]} waits here")]
    sites = {int(program.site[ring[0].waiting])}
    for wait in ring[1:]:
        if int(program.site[wait.waiting]) not in sites and len(labels) < 4:
            sites.add(int(program.site[wait.waiting]))
            rank = int(program.rank[wait.waiting])
            labels.append(facts.label(wait.waiting, f"rank {rank} waits here"))
    lines = _lines(facts, ring)
    notes = ("\n".join(lines),)
    notes += facts.origin(ring[0].waiting)
    if code == "CL220":
        notes += ("a rooted collective promises only the data dependence between root and leaf",)
    extra: dict[str, object] = {"cycle": [_step(facts, wait) for wait in ring]}
    return Diagnostic(code, what, tuple(labels), notes, _suggest(facts, ring), extra=extra)


def _lines(facts: Facts, ring: list[Wait]) -> list[str]:
    if len(ring) <= SHOWN:
        return [_line(facts, wait) for wait in ring]
    head, tail = ring[: SHOWN // 2], ring[-2:]
    middle = f"… {len(ring) - len(head) - len(tail):,} more ranks in the same way …"
    return [*(_line(facts, w) for w in head), middle, *(_line(facts, w) for w in tail)]


def _line(facts: Facts, wait: Wait) -> str:
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


def _suggest(facts: Facts, ring: list[Wait]) -> str | None:
    """What to write instead, where the shape of the ring tells."""
    program = facts.program
    kinds = [Kind(int(program.kind[w.waiting])) for w in ring]
    if any(kind.is_collective for kind in kinds):
        if all(kind.is_collective for kind in kinds):
            return "call the collectives of different groups in one order on all ranks"
        return "move the message to the same side of the collective on both ranks"
    row = ring[0].waiting
    rank = int(program.rank[row])
    behind = next((w.awaited for w in ring if int(program.rank[w.awaited]) == rank), None)
    if behind is None:
        return "put the messages that cross in one `parallel:`, so that all start before any ends"
    variables = loop_variables(program, [row, behind])
    if program.site[behind] == program.site[row]:
        if variables[row] != variables[behind]:
            return "let the ranks take these messages in one order"
        return "put the messages that cross in one `parallel:`, so that all start before any ends"
    joined = int(program.wait[row])
    if joined >= 0:
        return f"start `{program.text(behind)}` before the wait at {facts.place(joined)}"
    if variables[row] != variables[behind] or not _adjacent(program, row, behind):
        return "let one rank of the ring do the later operation first, or post it with `async`"
    return _in_parallel(facts, row, behind)


def _adjacent(program: Program, row: int, behind: int) -> bool:
    """Whether nothing but local work stands between two rows of a rank, in one sequence."""
    low, high = sorted((row, behind))
    between = program.kind[low + 1 : high]
    local = (between >= Kind.COPY) & (between <= Kind.EXTERN)
    nest = program.nest[[low, high]]
    _, _, sequence = program.nests.look_up(nest)
    return bool(local.all() and nest[0] == nest[1] and (nest[0] < 0 or sequence[0]))


def _in_parallel(facts: Facts, row: int, behind: int) -> str:
    """Both ends of a rank in one block; into a temp, where they would use the same data."""
    program = facts.program
    rank = int(program.rank[row])
    lines = [f"put both ends of rank {rank} in one block, so that they start together:"]
    target = _shared(program, row, behind)
    if target:
        lines.append(f"temp inbox: like {target}")
    lines.append("parallel:")
    for end in (row, behind):
        text = program.text(end)
        if target and program.kind[end] == Kind.RECV:
            text = text.replace(f"({target}", "(inbox", 1)
        lines.append(f"    {text}   # now at {facts.place(end)}")
    return "\n".join([*lines, f"inbox -> {target}"] if target else lines)


def _shared(program: Program, row: int, behind: int) -> str:
    """What a recv writes, as it is written, if the other end uses elements of it."""
    ops = program.operands
    one, two = int(program.first[row]), int(program.first[behind])
    apart = (
        ops.buffer[one] != ops.buffer[two]
        or ops.offset[one] + ops.length[one] <= ops.offset[two]
        or ops.offset[two] + ops.length[two] <= ops.offset[one]
    )
    recv = next((r for r in (row, behind) if program.kind[r] == Kind.RECV), None)
    match = re.match(r"recv\(([\w.\[\] ]+?),", program.text(recv)) if recv is not None else None
    return "" if apart or match is None else match.group(1)
