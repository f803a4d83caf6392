"""Recorded operations as statements of the pattern that ran."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from commlang.explain.calls import Calls, scheduled_calls
from commlang.explain.place import Placed, names_of, place
from commlang.explain.words import Speaker
from commlang.program.matching import match_collectives, match_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlang.explain.dump import Entry, GroupKey
    from commlang.explain.job import Job
    from commlang.explain.problems import Problem
    from commlang.program import Program

_NEXT = 4
"""Statements that are named as those that come next."""


class PatternSpeaker(Speaker):
    """Tells calls as statements, where what a rank issued fits the pattern in one way only."""

    def __init__(self, job: Job, calls: Calls, numbers: Mapping[GroupKey, int]) -> None:
        super().__init__(job)
        self.program = calls.program
        self._calls = calls
        self._numbers = numbers
        self.placed: dict[int, Placed] = {
            rank: place(job, dump, calls, numbers)
            for rank, dump in job.dumps.items()
            if rank < calls.program.world
        }

    @property
    def unplaced(self) -> int:
        """How many operations are none of the pattern's, as far as can be told."""
        issued = sum(len(self.job.dumps[rank].entries) for rank in self.placed)
        return issued - sum(len(placed.rows) for placed in self.placed.values())

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
        return self._entry_row(problem.calls[rank])

    def _entry_row(self, entry: Entry) -> int | None:
        placed = self.placed.get(entry.rank)
        row = placed.rows.get(entry.order) if placed else None
        return self._by_turn(entry) if row is None else row

    def _by_turn(self, entry: Entry) -> int | None:
        """The row of a collective on a group that was made for the pattern, by its number."""
        number = self._numbers.get(entry.group, 0)
        rows = self._turns.get((entry.rank, number), []) if not entry.is_message else []
        if not number or not rows:
            return None
        row = rows[(entry.number - 1) % len(rows)]
        kind = self.program.site_of(row).kind
        return row if entry.name.startswith(names_of(kind)) else None

    @cached_property
    def _turns(self) -> dict[tuple[int, int], list[int]]:
        """The rows of a rank's collectives on a group, in the order of issue."""
        found: dict[tuple[int, int], list[int]] = {}
        for rank in self.placed:
            for row in self._calls.order(rank):
                if self.program.site_of(row).kind.is_collective:
                    found.setdefault((rank, int(self.program.group[row])), []).append(row)
        return found

    def entry(self, entry: Entry) -> str:
        """An operation that was issued, as the statement that issued it."""
        row = self._entry_row(entry)
        return super().entry(entry) if row is None else self.text(row)

    def next_of(self, rank: int) -> Sequence[str]:
        """The statements from the rank's last recorded one up to the next that is recorded."""
        placed = self.placed.get(rank)
        rows = placed.following if placed else ()
        told = [self.text(row) for row in rows[:_NEXT]]
        return [*told, f"{len(rows) - _NEXT} more"] if len(rows) > _NEXT else told

    def messages_of(self, rank: int) -> Sequence[str] | None:
        """Who is at the other end of the messages that come next for a rank, and how far it is."""
        placed = self.placed.get(rank)
        if placed is None or not placed.following:
            return None
        rows = [row for row in placed.following if self.program.site_of(row).kind.is_message]
        return [line for row in rows[:_NEXT] for line in self._other_end(row)]

    def _other_end(self, row: int) -> list[str]:
        rank = int(self.program.rank[row])
        for other in self._others.get(row, ()):
            peer = int(self.program.rank[other])
            placed = self.placed.get(peer)
            if peer != rank and placed and other in placed.following:
                return [f"rank {peer} may not have issued its {self.text(other)} either"]
            if peer != rank and placed and placed.rows:
                order = self._calls.order(peer)
                last = placed.rows[max(placed.rows)]
                past = order.index(last) > order.index(other)
                where = "is past" if past else "has not come to"
                return [f"rank {peer} {where} its {self.text(other)} in the pattern"]
        return []

    def astray(self, rank: int) -> tuple[Entry, str] | None:
        """The operation with which a rank left the pattern, and what the pattern has there."""
        placed = self.placed.get(rank)
        if placed is None or placed.astray is None or placed.expected is None:
            return None
        return placed.astray, self.text(placed.expected)

    def inside(self) -> Sequence[int]:
        """The ranks that are in the middle of the pattern."""
        return [rank for rank, placed in self.placed.items() if placed.inside]

    def text(self, row: int) -> str:
        """A call's statement with its place."""
        return self._calls.text(row)


def speaker_of(job: Job, program: Program, numbers: Mapping[GroupKey, int]) -> PatternSpeaker:
    """Takes the calls of the text, or those of the default schedule if more are among them."""
    written = PatternSpeaker(job, Calls(program), numbers)
    other = scheduled_calls(program, job.backends) if written.unplaced else None
    scheduled = PatternSpeaker(job, other, numbers) if other else written
    return min(written, scheduled, key=lambda speaker: speaker.unplaced)
