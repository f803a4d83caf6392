"""What the ranks of a pattern issue, call by call: as it is written, or as a schedule leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks import check_program
from commlang.diagnostics import Severity
from commlang.schedule import linearise, schedule
from commlang.schedule.chunks import piece_counts
from commlang.schedule.coalesce import members
from commlang.transports import RENDEZVOUS, Backend, Target

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.schedule import Scheduled

_NCCL = Target(Backend.NCCL)


class Calls:
    """The calls of a program, each by the row of its first statement.

    `scheduled` tells what the program was made of, if it is not `written`.
    """

    def __init__(self, written: Program, scheduled: Scheduled | None = None) -> None:
        self.program = scheduled.program if scheduled else written
        self._buckets = scheduled.buckets if scheduled else ()
        self._parts = _parts(written, scheduled) if scheduled and scheduled.chunks else {}
        self._orders: dict[int, list[int]] = {}
        self._made_one: dict[int, list[int]] = {}

    def order(self, rank: int) -> list[int]:
        """A rank's calls and local work in the order in which its host comes to them."""
        if rank not in self._orders:
            self._orders[rank] = self._order(rank)
        return self._orders[rank]

    def _order(self, rank: int) -> list[int]:
        first = members(self.program, rank, self._buckets)
        for row, bucket in first.items():
            self._made_one.setdefault(bucket, []).append(row)
        actions = linearise(self.program, rank, lambda: self.program)
        rows = (row for action in actions if action.act.value != "join" for row in action.rows)
        return [row for row in rows if first.get(row, row) == row]

    def elements(self, row: int) -> int:
        """The elements of a call whose first operand is all that it moves."""
        first = self.program.first[self._rows(row)]
        return int(self.program.operands.length[first[first >= 0]].sum())

    def text(self, row: int) -> str:
        """A call's statement, or statements, and their place."""
        rows = self._rows(row)
        told = list(dict.fromkeys(self._statement(each) for each in rows))
        text = f"{told[0]} to {told[-1]}" if len(told) > 1 else told[0]
        if row in self._parts:
            piece, pieces = self._parts[row]
            return f"{text}, piece {piece} of {pieces}"
        return f"{text}, {len(rows)} as one" if len(rows) > 1 else text

    def _rows(self, row: int) -> list[int]:
        """The rows of a call."""
        self.order(int(self.program.rank[row]))
        return self._made_one.get(row, [row])

    def _statement(self, row: int) -> str:
        return f"`{self.program.text(row)}` ({self.program.where(row)})"


def scheduled_calls(program: Program, backends: tuple[str, ...]) -> Calls | None:
    """The calls of the default schedule on a job's backend, if they are not those of the text."""
    target = _NCCL if "nccl" in backends else RENDEZVOUS
    if any(found.severity is Severity.ERROR for found in check_program(program, RENDEZVOUS)):
        return None
    found = schedule(program, target, "overlap")
    return Calls(program, found) if found.chunks or found.buckets else None


def _parts(written: Program, scheduled: Scheduled) -> dict[int, tuple[int, int]]:
    """For each row that is a piece of a call: which, counted from 1, and of how many.

    A schedule keeps the order in which a rank's communication starts, so the n-th is the n-th.
    """
    count = piece_counts(written, scheduled.chunks)[_talk(written)]
    pieces = np.repeat(count, count)
    piece = np.arange(len(pieces)) - np.repeat(np.cumsum(count) - count, count)
    rows = _talk(scheduled.program)
    split = zip(rows.tolist(), (piece + 1).tolist(), pieces.tolist(), strict=True)
    return {row: (number, of) for row, number, of in split if of > 1}


def _talk(program: Program) -> Array:
    return np.flatnonzero(program.is_message | program.is_collective)
