"""How much room each stretch of time gets, in cells: a step is one where steps are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.draw.fold import Fold
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.timing import Timing

HEAD, WINDOWS = 18, 12
"""Steps at the start of a long program that are shown one by one, and blocks for the rest."""
MOST_STEPS = 100
"""Steps up to which a program is not long."""
CLOCK, MOST_WINDOWS = 25, 160
"""Cells of a timeline in seconds, and blocks of one of its lanes."""


@record
class Scale:
    """Between `knots`, times in order, cells grow evenly; at them they are `cells`.

    From `head` on, events of long programs stand in so many `windows`.
    """

    knots: Array
    cells: Array
    head: float
    windows: int

    def cell(self, time: float) -> float:
        """Where a time is; behind the last knot each unit of time is a cell."""
        beyond = max(time - float(self.knots[-1]), 0.0)
        return float(np.interp(time, self.knots, self.cells)) + beyond

    def time(self, cell: float) -> float:
        """The time at a cell."""
        beyond = max(cell - float(self.cells[-1]), 0.0)
        return float(np.interp(cell, self.cells, self.knots)) + beyond

    @property
    def folds(self) -> bool:
        """Whether events stand in windows from some time on."""
        return self.head < float(self.knots[-1])


def clock_scale(first: float, last: float, most: int, room: int) -> Scale:
    """Even time; lanes of at most `most` events have no windows if they have room for those."""
    last = last if last > first else first + 1
    knots, cells = np.array([first, last]), np.array([0.0, CLOCK])
    return Scale(knots, cells, first if most > room else last, min(room, MOST_WINDOWS))


def step_scale(program: Program, chosen: Fold, timing: Timing, met: Array, room: int) -> Scale:
    """A cell for each step in which a rank that is shown starts, meets or ends something."""
    rows = [program.rows_of(rank) for rank in chosen.shown]
    times = [column[r.start : r.stop] for column in (timing.start, met, timing.end) for r in rows]
    knots = np.unique(np.concatenate([np.zeros(1), *times]))
    knots = knots[~np.isnan(knots)]
    most = max((len(r) for r in rows), default=0)
    if len(knots) == 1:
        knots = np.append(knots, knots[0] + 1)
    if (most <= room and len(knots) <= MOST_STEPS) or len(knots) <= HEAD + 2:
        return Scale(knots, np.arange(len(knots), dtype=float), float(knots[-1]), WINDOWS)
    shown = np.append(knots[: HEAD + 1], knots[-1])
    cells = np.append(np.arange(HEAD + 1, dtype=float), float(HEAD + WINDOWS))
    return Scale(shown, cells, float(knots[HEAD]), WINDOWS)


def even(values: Sequence[float], most: int) -> list[float]:
    """Some of many values, evenly chosen, the first among them."""
    step = max(-(-len(values) // max(most, 1)), 1)
    return list(values[::step])
