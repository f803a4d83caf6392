"""Regions cut at each other's ends, so that any two pieces are the same or apart.

Questions about overlaps of many regions become questions about equal numbers of pieces (atoms).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.program.sorting import distinct, stable_order
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.program.columns import Array

_SLICE = 1 << 22


@record
class Atoms:
    """Intervals in atoms: interval i is made of the atoms `first[i]` to `last[i] - 1`.

    `ends` holds the ends of atoms: atom k goes from `ends[k]` to `ends[k + 1]`, as numbers of
    elements plus `span` times the place (such as a buffer of a rank).
    """

    first: Array
    last: Array
    ends: Array
    span: int

    @classmethod
    def of(cls, place: Array, low: Array, high: Array) -> Atoms:
        """Cut intervals, low < high; those of different places never meet. Places are small."""
        span = int(high.max(initial=0)) + 1
        start, stop = place * span + low, place * span + high
        ends = distinct(np.concatenate([start, stop]))
        return cls(np.searchsorted(ends, start), np.searchsorted(ends, stop), ends, span)

    def __len__(self) -> int:
        return len(self.ends)

    def pieces(self) -> Iterator[tuple[Array, Array]]:
        """All pairs (interval, atom) by interval, not too many at once."""
        count = self.last - self.first
        if not len(count):
            return
        upto = np.cumsum(count)
        at = 0
        while at < len(count):
            done = int(upto[at - 1]) if at else 0
            stop = max(at + 1, int(np.searchsorted(upto, done + _SLICE, side="right")))
            many = count[at:stop]
            item = np.repeat(np.arange(at, stop), many)
            within = np.arange(len(item)) - np.repeat(upto[at:stop] - many - done, many)
            yield item, self.first[item] + within
            at = stop

    def elements(self, atom: int) -> tuple[int, int]:
        """The elements of an atom, from first to behind the last."""
        low, high = int(self.ends[atom]), int(self.ends[atom + 1])
        place = low // self.span
        return low - place * self.span, high - place * self.span


class Latest:
    """The largest of some values on each atom so far; values are at least 0, and -1 is none."""

    def __init__(self, atoms: Atoms) -> None:
        self._known = np.full(len(atoms), -1, dtype=np.int64)

    def before(self, atom: Array, moment: Array, value: Array) -> Array:
        """For each piece, the largest value on its atom of an earlier moment; keeps the values.

        Pieces come in the order of moments within each atom.
        """
        order = stable_order(atom)
        atom, moment, value = atom[order], moment[order], value[order]
        fresh = np.ones(len(atom), dtype=np.bool_)
        fresh[1:] = atom[1:] != atom[:-1]
        value[fresh] = np.maximum(value[fresh], self._known[atom[fresh]])
        number = np.cumsum(fresh) - 1
        span = int(value.max(initial=0)) + 2
        upto = np.maximum.accumulate(value + number * span) - number * span
        opens = fresh.copy()
        opens[1:] |= moment[1:] != moment[:-1]
        place = np.maximum.accumulate(np.where(opens, np.arange(len(atom)), 0))
        earlier = np.where(fresh[place], self._known[atom], upto[place - 1])
        final = np.flatnonzero(np.append(fresh[1:], True))
        self._known[atom[final]] = upto[final]
        result = np.empty(len(atom), dtype=np.int64)
        result[order] = earlier
        return result
