"""What a rank brings to a trace: its marks, and how its clock stands to that of rank 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array


@record
class Clock:
    """A clock against that of rank 0, seen at one or more moments.

    At `at[i]` seconds of this clock it was `offset[i]` seconds ahead, give or take `error[i]`.
    """

    at: tuple[float, ...] = (0.0,)
    offset: tuple[float, ...] = (0.0,)
    error: tuple[float, ...] = (0.0,)

    def to_first(self, times: Array) -> Array:
        """Times of this clock as rank 0's, drift between the moments taken as even."""
        return times - np.interp(times, self.at, self.offset)

    @property
    def bound(self) -> float:
        """Seconds that a time of this clock may be off from rank 0's, at those moments."""
        return max(self.error)


@record
class RankTrace:
    """One rank of a run: `marks[i, k]` is when its action k of run i began, and k - 1 ended.

    Marks are seconds of the rank's own clock, an array (runs, actions + 1).
    """

    rank: int
    host: str
    marks: Array
    clock: Clock = Clock()
