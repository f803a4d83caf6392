"""Times of collectives that follow from ping-pong and all_reduce, by the backend's algorithms.

A collective of n ranks on S bytes (of its largest tensor) takes some steps, one after the other,
and moves some bytes in all. Where messages share the host's processors, the bytes of all ranks and
of all groups at work count, and which way they take does not; else those of the busiest rank do.
How much longer than this steps in a ring take, which wait for one another and reduce, all_reduce
tells for every size; that factor is taken for the other rings.

Algorithms of gloo: https://github.com/pytorch/gloo (allreduce.cc, reduce.cc, broadcast.cc,
allgather.cc, alltoall.cc, gather.cc, scatter.cc, barrier.cc). What torch puts around them, an
all_reduce on a copy for reduce_scatter and a flat buffer for all_gather and gather:
https://github.com/pytorch/pytorch, torch/csrc/distributed/c10d/ProcessGroupGloo.cpp. Of others:
Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH,
https://doi.org/10.1177/1094342005051521.
"""

from __future__ import annotations

from math import ceil, log2
from typing import TYPE_CHECKING

import numpy as np

from commlang.calibrate.fit import clone_seconds
from commlang.calibrate.model import ALL_REDUCE, BOTH
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlang.calibrate.fit import Figures
    from commlang.calibrate.model import Samples
    from commlang.program.columns import Array

MOST_GROUPS = 8
"""Sizes of groups for which times are given, at most: the largest, and their halves."""


@record
class Recipe:
    """A collective of n ranks on S bytes: steps, and in parts of S what it moves.

    `moved` is by all ranks together, `busiest` by one, `message` the size of one message, `fresh`
    what each rank copies into fresh memory.
    """

    ring: bool
    steps: Callable[[int], float]
    moved: Callable[[int], float]
    busiest: Callable[[int], float]
    message: Callable[[int], float]
    fresh: float = 0.0


def _part(n: int) -> float:
    return 1 / n


def _whole(_: int) -> float:
    return 1.0


def _rounds(n: int) -> float:
    return ceil(log2(n))


def _rest(n: int) -> float:
    return (n - 1) / n


_REDUCED = Recipe(True, lambda n: 2 * n - 2, lambda n: 2 * n - 2, lambda n: 2 * _rest(n), _part)
RECIPES = {
    ALL_REDUCE: _REDUCED,
    "reduce": Recipe(True, lambda n: n, lambda n: n - 1 + _rest(n), lambda n: 2 * _rest(n), _part),
    "broadcast": Recipe(False, _rounds, lambda n: n - 1, _rounds, _whole),
    "scatter": Recipe(False, lambda _: 1, _rest, _rest, _part),
    "gather": Recipe(False, lambda _: 1, _rest, _rest, _part),
    "all_gather": Recipe(True, lambda n: n - 1, lambda n: n - 1, _rest, _part),
    "reduce_scatter": Recipe(True, lambda n: n - 1, lambda n: n - 1, _rest, _part),
    "all_to_all": Recipe(False, lambda n: n - 1, lambda n: n - 1, _rest, _part),
    "barrier": Recipe(False, _rounds, lambda _: 0, lambda _: 0, _whole),
}
"""What each collective takes, by torch's name."""
GLOO = {
    "reduce_scatter": Recipe(True, _REDUCED.steps, _REDUCED.moved, _REDUCED.busiest, _part, 1.0),
    "all_gather": Recipe(True, lambda n: n - 1, lambda n: n - 1, _rest, _part, 1.0),
}
"""Where gloo in torch differs."""


def group_sizes(world: int) -> list[int]:
    """The world and its halves down to 2."""
    found = [world]
    while found[-1] >= 4 and len(found) < MOST_GROUPS:
        found.append(found[-1] // 2)
    return [n for n in found if n > 1]


class Predicted:
    """Times of collectives on groups of a world, in seconds at the sizes that were measured."""

    def __init__(self, samples: Samples, figures: Figures) -> None:
        self._samples, self._figures = samples, figures
        recipes = RECIPES | (GLOO if samples.backend == "gloo" else {})
        self._recipes = recipes
        self._bend = self._measured_over_fit()
        self._ring = np.ones(len(samples.sizes))
        plain = self._moves(recipes[ALL_REDUCE], samples.world)
        self._ring = np.clip(samples.seconds[ALL_REDUCE] / plain, 0.2, 10.0)

    def names(self) -> Iterator[str]:
        """All collectives that times are given for."""
        yield from self._recipes

    def seconds(self, name: str, ranks: int) -> Array:
        """Times of a collective per size; of all_reduce in the world, those that were measured."""
        if name == ALL_REDUCE and ranks == self._samples.world:
            return self._samples.seconds[ALL_REDUCE]
        recipe = self._recipes[name]
        times = self._moves(recipe, ranks) * (self._ring if recipe.ring else 1.0)
        return np.maximum.accumulate(times + recipe.fresh * clone_seconds(self._samples))

    def _moves(self, recipe: Recipe, ranks: int) -> Array:
        """The steps, and all bytes through what carries them."""
        samples, figures = self._samples, self._figures
        groups = max(samples.world // ranks, 1) if figures.shared else 1
        part = recipe.moved(ranks) * groups if figures.shared else recipe.busiest(ranks)
        sizes = samples.sizes
        bend = np.interp(np.log(sizes * recipe.message(ranks)), np.log(sizes), self._bend)
        return bend * (recipe.steps(ranks) * figures.alpha + part * sizes / figures.bandwidth)

    def _measured_over_fit(self) -> Array:
        """How far ping-pong both ways was from its fitted line, per size: caches, for one."""
        samples, figures = self._samples, self._figures
        load = 2 * samples.pairs if figures.shared else 1
        line = figures.alpha + load * samples.sizes / figures.bandwidth
        return np.clip(samples.seconds[BOTH] / line, 0.2, 5.0)
