"""Find the loops in a long list of actions, so that a pattern has them as loops.

A schedule is mostly steps that repeat with the next micro-batch. `fold` turns such a run into one
`Loop`; folding again finds loops of loops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from commlang.convert.actions import Act

MAX_PERIOD = 64
"""Steps of one round of a loop, at most."""
MIN_ROUNDS = 3
_PASSES = 3


@record
class Leaf:
    """One action on a micro-batch, or on none; a `note` is a comment behind it."""

    act: Act
    stage: int
    batch: int | None
    note: str = ""

    @property
    def shape(self) -> Hashable:
        """What stays when it is repeated with another micro-batch."""
        return (self.act, self.stage, self.note)

    def relative(self, base: int) -> Leaf:
        """The same, with the micro-batch counted from `base`."""
        return self if self.batch is None else replace(self, batch=self.batch - base)


@record
class Loop:
    """`rounds` rounds of a body, each `step` micro-batches after the last.

    The micro-batches in the body count from that of the round; the first round's is `batch`.
    """

    body: tuple[Leaf | Loop, ...]
    rounds: int
    step: int
    batch: int

    @property
    def shape(self) -> Hashable:
        """What stays when it is repeated with other micro-batches."""
        return (self.body, self.rounds, self.step)

    def relative(self, base: int) -> Loop:
        """The same, with the micro-batch counted from `base`."""
        return replace(self, batch=self.batch - base)


Item = Leaf | Loop


def fold(items: Sequence[Item]) -> list[Item]:
    """The same steps in the same order, with what repeats three times or more in loops."""
    result = list(items)
    for _ in range(_PASSES):
        folded = _fold_once(result)
        if len(folded) == len(result):
            break
        result = folded
    return result


def _fold_once(items: list[Item]) -> list[Item]:
    saved, periods, rounds = _best(items)
    result: list[Item] = []
    at = 0
    while at < len(items):
        period = int(periods[at])
        # A loop that starts a little later and saves more is not spoilt by this one.
        if saved[at] > 0 and saved[at] >= saved[at : at + period].max():
            result.append(_loop(items[at : at + period], items[at + period], int(rounds[at])))
            at += period * int(rounds[at])
        else:
            result.append(items[at])
            at += 1
    return result


def _loop(body: Sequence[Item], following: Item, rounds: int) -> Loop:
    base = body[0].batch
    assert base is not None
    assert following.batch is not None
    relative = fold([item.relative(base) for item in body])
    return Loop(tuple(relative), rounds, following.batch - base, base)


def _best(items: Sequence[Item]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each place, the loop that starts there and saves most: steps saved, period, rounds."""
    count = len(items)
    ids: dict[Hashable, int] = {}
    shapes = np.empty(count, np.int64)
    batches = np.zeros(count, np.int64)
    for place, item in enumerate(items):
        if item.batch is None:
            shapes[place] = -1 - place  # repeats nothing
        else:
            shapes[place] = ids.setdefault(item.shape, len(ids))
            batches[place] = item.batch
    saved, periods, rounds = (np.zeros(count, np.int64) for _ in range(3))
    for period in range(1, min(MAX_PERIOD, count // MIN_ROUNDS) + 1):
        times = _runs(shapes, batches, period) // period + 1
        gain = np.where(times >= MIN_ROUNDS, period * (times - 1), 0)
        here = slice(0, len(gain))
        better = gain > saved[here]
        saved[here][better] = gain[better]
        periods[here][better] = period
        rounds[here][better] = times[better]
    return saved, periods, rounds


def _runs(shapes: np.ndarray, batches: np.ndarray, period: int) -> np.ndarray:
    """How many steps from each place on are those of one period before, by one distance."""
    step = batches[period:] - batches[:-period]
    same = (shapes[period:] == shapes[:-period]) & (step != 0)
    count = len(same)
    # A run ends before a step that differs or that is another distance away than the one before.
    ends = np.flatnonzero(~same | np.concatenate(([False], step[1:] != step[:-1])))
    ends = np.append(ends, count)
    places = np.arange(count)
    following = ends[np.searchsorted(ends, places, side="right")]
    return np.where(same, following - places, 0)
