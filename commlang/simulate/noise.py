"""Ranks that are slower than others, and times that vary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.errors import UsageError
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program.columns import Array

MAX_FACTOR = 1e6


@record
class Straggler:
    """A rank whose processor takes `factor` times as long for everything."""

    rank: int
    factor: float


def factors(stragglers: Sequence[Straggler], world: int) -> Array:
    """Per rank by what its times are multiplied; raises UsageError for what makes no sense."""
    found = np.ones(world)
    for one in stragglers:
        if not 0 <= one.rank < world:
            raise UsageError(f"straggler {one.rank}: there are ranks 0 to {world - 1}")
        if not 0 < one.factor <= MAX_FACTOR:
            raise UsageError(
                f"straggler {one.rank}: a factor is more than 0, at most {MAX_FACTOR:g}"
            )
        found[one.rank] *= one.factor
    return found


class Jitter:
    """Factors of mean 1 that vary by `part` (a standard deviation, log-normal), by a seed."""

    def __init__(self, part: float, seed: int) -> None:
        if not 0 <= part <= 1:
            raise UsageError(f"jitter of {part}: give a part from 0 to 1, as `--jitter 10%`")
        self._sigma = float(np.sqrt(np.log1p(part * part)))
        self._random = np.random.default_rng(abs(seed))

    def __bool__(self) -> bool:
        return self._sigma > 0

    def on(self, times: Array, rows: Array) -> Array:
        """These times, each with a factor of its own, given out in the order of `rows`."""
        if not self:
            return times
        normal = self._random.standard_normal(len(times))
        factors = np.empty(len(times))
        factors[np.argsort(rows)] = np.exp(self._sigma * normal - self._sigma**2 / 2)
        return times * factors
