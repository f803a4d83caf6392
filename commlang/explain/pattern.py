"""Recorded operations as statements of the pattern that ran."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from commlang.explain.place import Placed, place
from commlang.explain.words import Speaker
from commlang.program.matching import match_collectives, match_messages
from commlang.schedule.linear import linearise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlang.explain.dump import GroupKey
    from commlang.explain.job import Job
    from commlang.explain.problems import Problem
    from commlang.program import Program

_NEXT = 4
"""Statements that are named as those that come next."""


def labelled(program: Program) -> Mapping[str, tuple[int, ...]]:
    """The ranks of the pattern's groups by label, of those whose label is theirs alone."""
    found: dict[str, tuple[int, ...]] = {}
    several: set[str] = set()
    for entry in program.groups.entries[1:]:
        if found.setdefault(entry.label, entry.members) != entry.members:
            several.add(entry.label)
    return {label: ranks for label, ranks in found.items() if label not in several}


class PatternSpeaker(Speaker):
    """Tells calls as statements, where what a rank issued fits the pattern in one way only."""

    def __init__(self, job: Job, program: Program) -> None:
        super().__init__(job)
        self.program = program
        self.placed: dict[int, Placed] = {
            rank: place(job, dump, program, issue_order(program, rank))
            for rank, dump in job.dumps.items()
            if rank < program.world
        }

    @cached_property
    def _others(self) -> dict[int, list[int]]:
        """For each row the rows that meet it, itself included."""
        calls = match_collectives(self.program)
        found: dict[int, list[int]] = {}
        for low, high in zip(calls.start[:-1].tolist(), calls.start[1:].tolist(), strict=True):
            rows = calls.row[low:high].tolist()
            found |= dict.fromkeys(rows, rows)
        messages = match_messages(self.program)
        pairs = zip(messages.send.tolist(), messages.recv.tolist(), strict=True)
        for send, recv in pairs:
            found[send] = found[recv] = [send, recv]
        return found

    def statement(self, problem: Problem, rank: int) -> str | None:
        """The statement of a rank's part in a call; for one that did not come, its own."""
        row = self._row(problem, rank)
        return None if row is None else self.text(row)

    def _row(self, problem: Problem, rank: int) -> int | None:
        if rank in problem.calls:
            return self._placed_row(problem, rank)
        for other in problem.calls:
            row = self._placed_row(problem, other)
            for met in self._others.get(row, ()) if row is not None else ():
                if int(self.program.rank[met]) == rank:
                    return met
        return None

    def _placed_row(self, problem: Problem, rank: int) -> int | None:
        placed = self.placed.get(rank)
        return placed.rows.get(problem.calls[rank].order) if placed else None

    def next_of(self, rank: int) -> Sequence[str]:
        """The statements from the rank's last recorded one up to the next that is recorded."""
        placed = self.placed.get(rank)
        if placed is None:
            return ()
        return [self.text(row) for row in placed.following[:_NEXT]]

    def learned(self) -> dict[GroupKey, tuple[int, ...]]:
        """The ranks of groups that the dumps do not list, from the statements that used them."""
        found: dict[GroupKey, set[int]] = {}
        for rank, placed in self.placed.items():
            for entry in self.job.dumps[rank].entries:
                if entry.order in placed.rows and not self.job.is_listed(entry.group):
                    number = int(self.program.group[placed.rows[entry.order]])
                    found.setdefault(entry.group, set()).add(number)
        entries = self.program.groups.entries
        return {key: entries[min(n)].members for key, n in found.items() if len(n) == 1}

    def text(self, row: int) -> str:
        """A row's statement with its place."""
        return f"`{self.program.text(row)}` ({self.program.where(row)})"


def issue_order(program: Program, rank: int) -> list[int]:
    """A rank's rows in the order in which its host comes to them, without waits."""
    actions = linearise(program, rank, lambda: program)
    return [row for action in actions if action.act.value != "join" for row in action.rows]
