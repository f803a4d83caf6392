"""Regions: stretches of elements with which the same happens, so that one stands for all.

Every flow cuts its source and its target at both ends, and a cut inside one end is a cut inside
the other. Between two cuts all elements have the same history, each from its own place on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts.addresses import MAX_CELLS, TooLarge
from commlang.program.sorting import distinct
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array

_MAX_WORK = 1 << 31
"""Most looks at a flow while cuts spread."""

Pairs = tuple["Array", "Array", "Array"]
"""Regions that are to be cut alike: their addresses, and their length."""


@record
class Cells:
    """The regions: cell i reaches from `cuts[i]` to `cuts[i + 1]`."""

    cuts: Array

    def __len__(self) -> int:
        return len(self.cuts)

    def first(self, address: Array) -> Array:
        """The cell that starts at each address, which must be a cut."""
        return np.searchsorted(self.cuts, address)

    def expand(self, start: Array, length: Array) -> tuple[Array, Array]:
        """The first cell of each region and how many cells it has."""
        if not len(self.cuts):
            return start, length
        first = self.first(start)
        at_most = len(self.cuts) - 1
        count = np.ones(len(first), dtype=np.int64)
        single = self.cuts[np.minimum(first + 1, at_most)] - start == length
        if not single.all():
            many = np.flatnonzero(~single)
            count[many] = self.first(start[many] + length[many]) - first[many]
        return first, count

    def are_cuts(self, address: Array) -> Array:
        """Which addresses are cuts."""
        at = np.minimum(self.first(address), max(0, len(self.cuts) - 1))
        return self.cuts[at] == address if len(self.cuts) else np.zeros(len(address), np.bool_)


def spread(first: Array, count: Array) -> tuple[Array, Array]:
    """Runs `first[i] … first[i] + count[i] - 1` one after the other, and the i of each entry."""
    if len(count) and int(count.max()) == 1 and int(count.min()) == 1:
        return first, np.arange(len(first))
    owner = np.repeat(np.arange(len(first)), count)
    ends = np.cumsum(count)
    return np.arange(len(owner)) + (first - (ends - count))[owner], owner


def cut(pairs: list[Pairs]) -> Cells:
    """The coarsest regions that all pairs allow; raises TooLarge if there are too many."""
    source, target, length = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    cuts = distinct(np.concatenate([source, source + length, target, target + length]))
    fresh, work = None, 0
    chosen = np.arange(len(source))
    while len(chosen):
        work += len(chosen)
        if len(cuts) > MAX_CELLS or work > _MAX_WORK:
            raise TooLarge("its slices cut the tensors into too many regions")
        if fresh is not None:
            chosen = chosen[_touched(fresh, source, target, length, chosen)]
        fresh = _missing(cuts, source[chosen], target[chosen], length[chosen])
        if not len(fresh):
            break
        cuts = distinct(np.concatenate([cuts, fresh]))
        chosen = np.arange(len(source))
    return Cells(cuts)


def _touched(fresh: Array, source: Array, target: Array, length: Array, chosen: Array) -> Array:
    """Which of the chosen pairs have one of the fresh cuts inside."""
    touched = np.zeros(len(chosen), dtype=np.bool_)
    for start in (source[chosen], target[chosen]):
        low = np.searchsorted(fresh, start, side="right")
        high = np.searchsorted(fresh, start + length[chosen], side="left")
        touched |= low < high
    return touched


def _missing(cuts: Array, source: Array, target: Array, length: Array) -> Array:
    """Cuts that one end of a pair has and the other has not."""
    found = [np.zeros(0, dtype=np.int64)]
    for start, other in ((source, target), (target, source)):
        after = np.searchsorted(cuts, start, side="right")
        many = np.flatnonzero(cuts[after] != start + length)
        if not len(many):
            continue
        until = np.searchsorted(cuts, start[many] + length[many], side="left")
        inner, owner = spread(after[many], until - after[many])
        wanted = cuts[inner] - start[many][owner] + other[many][owner]
        at = np.minimum(np.searchsorted(cuts, wanted), len(cuts) - 1)
        found.append(wanted[cuts[at] != wanted])
    return distinct(np.concatenate(found))
