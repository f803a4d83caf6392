"""Times of collectives that follow from ping-pong and all_reduce, by the backend's algorithms.

A collective of n ranks on S bytes (of its largest tensor) takes some steps, one after the other,
and some messages in all; those that are not alone in a step, and those of other groups at work,
share the channel (`Figures.seconds`). How much longer than this steps in a ring take, which wait
for one another and reduce, all_reduce tells for every size; other rings are off by that factor too.

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

from commlang.calibrate.fit import copy_seconds, ping_pong
from commlang.calibrate.model import ALL_REDUCE
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
    """A collective of n ranks on S bytes: steps, messages, and the part of S that each carries.

    If `like_all_reduce`, the time is off from its steps and messages by as much as all_reduce's is.
    `copied` is the part of S that each rank copies in its memory besides.
    """

    like_all_reduce: bool
    steps: Callable[[int], float]
    messages: Callable[[int], float]
    part: Callable[[int], float]
    copied: float = 0.0


def _nth(n: int) -> float:
    return 1 / n


def _rounds(n: int) -> float:
    return ceil(log2(n))


def _others(n: int) -> float:
    return n - 1


def _ring(steps: Callable[[int], int], copied: float = 0.0) -> Recipe:
    """So many steps in each of which each rank sends a part to the next."""
    return Recipe(True, steps, lambda n: steps(n) * n, _nth, copied)


_STAR = Recipe(False, lambda _: 1, _others, _nth)
"""The root's messages from all others, or to them."""
RECIPES = {
    ALL_REDUCE: _ring(lambda n: 2 * n - 2),
    # A ring as above half the way, then the root gathers.
    "reduce": Recipe(True, lambda n: n, lambda n: n * n - 1, _nth),
    "broadcast": Recipe(False, _rounds, _others, lambda _: 1),
    "scatter": _STAR,
    "gather": _STAR,
    "all_gather": _ring(lambda n: n - 1),
    "reduce_scatter": _ring(lambda n: n - 1),
    "all_to_all": Recipe(False, lambda _: 1, lambda n: n * (n - 1), _nth),
    "barrier": Recipe(False, _rounds, lambda n: n * _rounds(n), lambda _: 0),
}
"""What each collective takes, by torch's name."""
GLOO = {
    "reduce_scatter": _ring(lambda n: 2 * n - 2, 1.0),
    "all_gather": _ring(lambda n: n - 1, 1.0),
    "gather": Recipe(False, lambda _: 1, _others, _nth, 1.0),
}
"""Where gloo in torch differs."""
_ALL_TO_ALL = Recipe(True, lambda _: 1, lambda n: n * (n - 1), _nth)
MPI = {
    "broadcast": Recipe(False, lambda _: 1, _others, lambda _: 1),
    "all_gather": _ALL_TO_ALL,
    "all_to_all": _ALL_TO_ALL,
}
"""Where MPI differs: it issues a collective's messages itself, which takes less than a rank does,
and Open MPI's nonblocking all_gather and all_to_all are flat, as is broadcast for up to 4 ranks
(nbc_iallgather.c, nbc_ialltoall.c and nbc_ibcast.c in ompi/mca/coll/libnbc).
"""
_DIFFERENT = {"gloo": GLOO, "mpi": MPI}


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
        recipes = RECIPES | _DIFFERENT.get(samples.backend, {})
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
        times = self._moves(recipe, ranks) * (self._ring if recipe.like_all_reduce else 1.0)
        return np.maximum.accumulate(times + recipe.copied * copy_seconds(self._samples))

    def _moves(self, recipe: Recipe, ranks: int) -> Array:
        """The steps and messages, those of other groups of that size at the same time included."""
        samples = self._samples
        steps, messages = recipe.steps(ranks), recipe.messages(ranks)
        messages *= max(samples.world // ranks, 1)
        size = samples.sizes * recipe.part(ranks)
        bend = np.interp(size, samples.sizes, self._bend)
        return bend * self._figures.seconds(messages, steps, size)

    def _measured_over_fit(self) -> Array:
        """How far ping-pong was from its fit, per size: caches, for one."""
        at_once, times = ping_pong(self._samples)
        fitted = self._figures.seconds(at_once[:, None], 1, self._samples.sizes)
        return np.clip(np.exp(np.log(times / fitted).mean(axis=0)), 0.2, 5.0)
