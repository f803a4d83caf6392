"""What the positions of a run's ranks mean: for diagnoses of a run that does not end."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING

from commlang.execute.diagnosis import Narrator
from commlang.program.matching import match_collectives, match_messages
from commlang.schedule import Act

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from commlang.plan import Plan
    from commlang.program import Program
    from commlang.schedule import Action


TURN = 1 << 32
"""Position n of run t is at t * TURN + n; runs count from 1, and 0 is what comes before them."""
AFTER = 1 << 31
"""From here on, positions of a run are those of what follows its statements: any rank's alike."""


_BETWEEN = {0: "the making of its data", 1: "the check of the contracts"}


class Story:
    """Statements and waits by (rank, position); built from the plan only when it is asked."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._actions = cache(self._actions_of)
        self._starts = cache(self._starts_of)

    @property
    def narrator(self) -> Narrator:
        """The form that the watchdog wants."""
        return Narrator(self.describe, self.awaits, self.finished)

    @cached_property
    def _program(self) -> Program:
        return self._plan.program()

    @cached_property
    def _partner(self) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return match_messages(self._program).partner

    @cached_property
    def _meetings(self) -> tuple[dict[int, int], list[list[int]]]:
        """For each collective's row its instance, and the rows of each instance."""
        calls = match_collectives(self._program)
        members = [
            calls.row[low:high].tolist()
            for low, high in zip(calls.start[:-1], calls.start[1:], strict=True)
        ]
        return {row: i for i, rows in enumerate(members) for row in rows}, members

    def _actions_of(self, rank: int) -> list[Action]:
        return self._plan.actions(rank, self._program)

    def _starts_of(self, rank: int) -> dict[int, int]:
        """The number of the action that starts each row of a rank."""
        return {
            row: number
            for number, action in enumerate(self._actions(rank))
            if action.act is not Act.JOIN
            for row in action.rows
        }

    def describe(self, rank: int, position: int) -> str:
        """The statement that a rank is at, with its place in the file."""
        turn, number = divmod(position, TURN)
        if number >= AFTER:
            return _BETWEEN.get(turn, f"the end of run {turn}")
        return self._statement(self._actions(rank)[number].row)

    def _statement(self, row: int) -> str:
        site = self._program.site_of(row)
        line, column = site.source.position(site.span.start)
        return f"`{self._program.text(row)}` ({site.source.path}:{line}:{column})"

    def finished(self, rank: int, position: int) -> str:
        """The last statement that a rank has finished in this run, else the run before."""
        turn, number = divmod(position, TURN)
        if number >= AFTER:
            return ""
        for action in reversed(self._actions(rank)[:number]):
            # What was only started is not finished.
            if action.act is not Act.START:
                return self._statement(action.row)
        return f"run {turn - 1}" if turn > 1 else ""

    def awaits(self, rank: int, position: int) -> Sequence[tuple[int, int]]:
        """Whom a rank waits for, and at which position each of them does its part."""
        turn, number = divmod(position, TURN)
        if number >= AFTER:
            return [(peer, turn * TURN + AFTER) for peer in range(self._plan.world)]
        action = self._actions(rank)[number]
        if action.act is Act.START:
            return ()
        needed: dict[int, int] = {}
        for row in action.rows:
            for other in self._others(row):
                peer = int(self._program.rank[other])
                at = turn * TURN + self._starts(peer)[other]
                needed[peer] = max(needed.get(peer, 0), at)
        return sorted(needed.items())

    def _others(self, row: int) -> list[int]:
        """The rows of other ranks that a row meets."""
        partner = int(self._partner[row])
        if partner >= 0:
            return [partner]
        instance, members = self._meetings
        if row not in instance:
            return []
        return [other for other in members[instance[row]] if other != row]
