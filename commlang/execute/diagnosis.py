"""From where the ranks stood to a sentence: who is at fault, and who waited for whom."""

from __future__ import annotations

import contextlib
import signal
from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING

from commlang.execute.progress import DONE, JOINED, JOINING, MEETING, NOT_STARTED
from commlang.execute.report import RankReport, State
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_MOST_LINES = 12


def _bare_step(rank: int, position: int) -> str:
    del rank
    return f"step {position}"


_OUTSIDE = {
    NOT_STARTED: "before joining the group",
    MEETING: "while looking for the other ranks",
    JOINING: "while joining the group",
    JOINED: "before the first statement",
    DONE: "after the last statement",
}


@record
class Narrator:
    """What the executor knows of its steps.

    `describe(rank, position)` is the statement, with its place in the file. `awaits(rank,
    position)` lists what the rank needs there before it can go on: pairs (peer, the least position
    at which the peer does its part). Positions are those that the ranks write, which count on
    over repetitions. Without `awaits`, any rank's progress counts as progress of all.
    `finished(rank, position)` is what the rank finished last, "" for nothing. All must be cheap and
    must not communicate.
    """

    describe: Callable[[int, int], str] = _bare_step
    awaits: Callable[[int, int], Sequence[tuple[int, int]]] | None = None
    finished: Callable[[int, int], str] | None = None

    def at(self, report: RankReport) -> str:
        """Where a rank stands, in words."""
        if report.position in _OUTSIDE:
            return _OUTSIDE[report.position]
        # A diagnosis has to come out, even of a position that its narrator does not know.
        with contextlib.suppress(Exception):
            return self.describe(report.rank, report.position)
        return _bare_step(report.rank, report.position)

    def after(self, report: RankReport) -> str:
        """What a rank has finished last, as the end of a clause; empty if that is not known."""
        if report.position >= 0 and self.finished:
            with contextlib.suppress(Exception):
                if last := self.finished(report.rank, report.position):
                    return f", after {last}"
        return ""


class WaitGraph:
    """Which rank waits for which, given where each stands."""

    def __init__(self, reports: Iterable[RankReport], narrator: Narrator) -> None:
        self.reports = {report.rank: report for report in reports}
        self._narrator = narrator

    def waits_for(self, rank: int) -> list[int]:
        """The ranks that have not come to where `rank` needs them, lowest first."""
        position = self.reports[rank].position
        if position == JOINING:
            away = (NOT_STARTED, MEETING)
            return sorted(r for r, other in self.reports.items() if other.position in away)
        needs: Sequence[tuple[int, int]] = ()
        if position >= 0 and self._narrator.awaits:
            with contextlib.suppress(Exception):
                needs = self._narrator.awaits(rank, position)
        return sorted({peer for peer, least in needs if peer != rank and self._lacks(peer, least)})

    def involved(self, rank: int) -> set[int]:
        """`rank` and all that it waits for, directly or through others; all if that is unknown."""
        if self._narrator.awaits is None:
            return set(self.reports)
        seen, ahead = {rank}, [rank]
        while ahead:
            new = set(self.waits_for(ahead.pop())) & self.reports.keys() - seen
            seen |= new
            ahead += new
        return seen

    def roots(self) -> list[int]:
        """The ranks that hold others up and wait for none; if there are none, all that wait."""
        waits = {rank: self.waits_for(rank) for rank in self.reports}
        awaited = {peer for peers in waits.values() for peer in peers}
        free = [rank for rank in self.reports if rank in awaited and not waits[rank]]
        return free or [rank for rank in self.reports if waits[rank]]

    def _lacks(self, peer: int, least: int) -> bool:
        report = self.reports.get(peer)
        return report is None or (report.position != DONE and report.position < least)


class Fault(Enum):
    """What a guilty rank did."""

    DIED = "died"
    FAILED = "failed"
    STALLED = "stalled"
    SILENT = "silent"


def find_fault(
    reports: Sequence[RankReport], graph: WaitGraph
) -> tuple[Fault, list[RankReport]] | None:
    """The ranks at fault: the dead, else the first to fail by itself, else who held others up.

    None if the ranks were only stopped from outside.
    """
    if dead := [r for r in reports if _died(r)]:
        return Fault.DIED, dead
    failed = sorted((r for r in reports if r.state is State.FAILED), key=lambda r: r.ended_ns)
    if own := [r for r in failed if not r.consequence]:
        return Fault.FAILED, [r for r in own if r.message == own[0].message]
    # Before lost connections, which a rank that gave up after a timeout causes in its turn.
    if any(r.state is State.TIMED_OUT for r in reports):
        held_up = [graph.reports[rank] for rank in graph.roots()]
        # Of ranks that are all inside one operation, the position tells no one from the others.
        stopped = [r for r in reports if r.suspended]
        return Fault.STALLED, held_up or stopped or _furthest_behind(reports)
    if not failed:
        return None
    lost = {peer for r in failed for peer in graph.waits_for(r.rank)}
    silent = [r for r in reports if r.state in (State.ABSENT, State.RUNNING) and r.rank in lost]
    return (Fault.SILENT, silent) if silent else (Fault.FAILED, failed[:1])


def explain(reports: Sequence[RankReport], narrator: Narrator) -> tuple[str, list[int]]:
    """The message of a failed run, cause first, and the ranks that it names as the cause."""
    graph = WaitGraph(reports, narrator)
    fault, guilty = find_fault(reports, graph) or (Fault.FAILED, [])
    accused = [(_accuse(fault, r, graph, narrator), r.rank, narrator.at(r)) for r in guilty]
    names = {report.rank for report in guilty}
    lines = _merged(accused) if guilty else ["the run was stopped from outside"]
    lines += ["  " + line for line in waiting(reports, narrator, skip=names)]
    lines = _shortened(lines)
    if stderr := next((report.stderr for report in guilty if report.stderr), ""):
        lines += ["  it wrote:", *("    " + line for line in stderr.splitlines())]
    return "\n".join(lines), sorted(names)


def waiting(
    reports: Sequence[RankReport], narrator: Narrator, skip: Iterable[int] = ()
) -> list[str]:
    """A line for each set of ranks that waited at one statement for the same ranks."""
    graph = WaitGraph(reports, narrator)
    unknown = (State.ABSENT, State.DONE)
    rest = [r for r in reports if r.rank not in set(skip) and r.state not in unknown]
    return _merged(
        (_stands(graph.waits_for(r.rank)) + narrator.after(r), r.rank, narrator.at(r)) for r in rest
    )


def ranks_text(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0, 2-5`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    parts = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in runs]
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(parts)


def _died(report: RankReport) -> bool:
    if report.suspended:  # and then ended, for it cannot end itself
        return False
    unsaid = report.state in (State.ABSENT, State.RUNNING)
    return report.state is State.VANISHED or (unsaid and report.exit_code is not None)


def _furthest_behind(reports: Sequence[RankReport]) -> list[RankReport]:
    order = (NOT_STARTED, MEETING, JOINING, JOINED)

    def progress(report: RankReport) -> int:
        outside = report.position in order
        return order.index(report.position) - len(order) if outside else report.position

    live = [r for r in reports if r.position != DONE]
    least = min(map(progress, live), default=0)
    return [r for r in live if progress(r) == least]


def _accuse(fault: Fault, report: RankReport, graph: WaitGraph, narrator: Narrator) -> str:
    """What a guilty rank did, with places for its name and its statement."""
    match fault:
        case Fault.DIED:
            return f"{{ranks}} {_death(report.exit_code)} {{at}}"
        case Fault.FAILED:
            return f"{{ranks}} failed {{at}}: {report.message}"
        case Fault.SILENT:
            return "{ranks} went silent {at}"
        case Fault.STALLED:
            peers = graph.waits_for(report.rank)
            held = ranks_text(peers) if peers else "no one"
            after = narrator.after(report)
            stood = f"made no progress for {report.idle_s:.0f} s {{at}}{after}"
            if report.suspended:
                return f"{{ranks}} {stood}, being stopped (as by SIGSTOP or a debugger)"
            return f"{{ranks}} {stood}{',' * bool(after)} and waited for {held}"


def _death(exit_code: int | None) -> str:
    if exit_code is None:
        return "died"
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was killed by signal {-exit_code}"


def _stands(peers: Sequence[int]) -> str:
    return f"{{ranks}} waited for {ranks_text(peers)} {{at}}" if peers else "{ranks} stood {at}"


def _merged(entries: Iterable[tuple[str, int, str]]) -> list[str]:
    """Lines for (phrase, rank, place), with the ranks of one phrase and place put together."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for phrase, rank, place in entries:
        groups[phrase, place].append(rank)
    return [
        phrase.replace("{ranks}", ranks_text(ranks), 1).replace("{at}", _at(place), 1)
        for (phrase, place), ranks in groups.items()
    ]


def _at(place: str) -> str:
    return place if place in _OUTSIDE.values() else f"at {place}"


def _shortened(lines: list[str]) -> list[str]:
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], f"  and {len(lines) - _MOST_LINES + 1} more"]
