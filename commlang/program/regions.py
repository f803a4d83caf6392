"""Which elements of which buffers the rows of a program touch.

Whoever looks at all of a large program does so in portions of whole ranks, which stay in the cache.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.sorting import combine, is_sorted, stable_order
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.program.columns import Array, Program

_PORTION = 1 << 18
"""Rows and operands of a portion, at least, unless it is the last."""
_RUNS = 1 << 22
"""Strided views are cut into at most so many runs at a time."""

Layout = tuple[tuple[int, ...], tuple[int, ...]]


@record
class Touches:
    """What rows touch, one entry per operand that has elements.

    `low` to `high` are the elements from the first to the last one; where `layout` is not -1,
    there are gaps between them. A broadcast only reads on its root and only writes elsewhere.
    """

    row: Array
    operand: Array
    buffer: Array
    low: Array
    high: Array
    layout: Array
    reads: Array
    writes: Array

    def __len__(self) -> int:
        return len(self.row)

    def pick(self, index: Array | slice) -> Touches:
        """The entries that a mask or an array of positions names."""
        return Touches(*(getattr(self, f.name)[index] for f in fields(self)))

    def joined(self, other: Touches) -> Touches:
        """These and others, in the order of their rows."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        both = Touches(*(np.concatenate(pair) for pair in pairs))
        return both.pick(np.argsort(both.row, kind="stable"))

    def of(self, row: Array) -> Touches:
        """The same data, touched by other rows."""
        return replace(self, row=row)


@record
class Runs:
    """Elements without gaps: `low` to `high` belong to entry `item` of some touches.

    `rough` runs stand for views of too many runs and may hold elements that are not touched.
    """

    item: Array
    low: Array
    high: Array
    rough: Array


def places(columns: list[tuple[Array, int]]) -> tuple[Array | slice, Array]:
    """A stable order by place, which columns of (values, bound) make, and in it the places.

    Places are numbered from 0 without gaps.
    """
    place = combine(columns)
    order: Array | slice = slice(None)
    if not is_sorted(place):
        order = stable_order(place)
        place = place[order]
    fresh = np.zeros(len(place), dtype=np.int64)
    fresh[1:] = place[1:] != place[:-1]
    return order, np.cumsum(fresh)


class Regions:
    """The regions that a program touches."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def portions(self) -> Iterator[slice]:
        """All rows, some ranks at a time."""
        start, work = 0, 0
        for stop, size in zip(self.program.rank_start[1:].tolist(), self._sizes, strict=True):
            work += size
            if stop > start and (work >= _PORTION or stop == len(self.program)):
                yield slice(start, stop)
                start, work = stop, 0

    def touches(self, rows: Array) -> Touches:
        """What some rows touch, in their order."""
        program = self.program
        counts, first = program.count[rows], program.first[rows]
        if not (counts == 1).all():
            owner = np.repeat(np.arange(len(rows)), counts)
            ends = np.cumsum(counts)
            within = np.arange(len(owner)) - np.repeat(ends - counts, counts)
            rows, first = rows[owner], first[owner] + within
        ops = program.operands
        low, length, layout = ops.offset[first], ops.length[first], ops.layout[first]
        high = low + length
        if self._spans:
            extent, gaps = self._extents
            high = np.where(layout >= 0, np.where(length > 0, low + extent[layout], low), high)
            layout = np.where(gaps[layout], layout, -1)
        access = ops.access[first]
        reads: Array = access != 1
        writes: Array = access > 0
        if self._broadcasts:
            rooted = program.kind[rows] == Kind.BROADCAST
            root = program.rank[rows] == program.peer[rows]
            reads, writes = np.where(rooted, root, reads), np.where(rooted, ~root, writes)
        found = Touches(rows, first, ops.buffer[first], low, high, layout, reads, writes)
        return found if (length > 0).all() else found.pick(length > 0)

    def by_buffer(self, touches: Touches) -> tuple[Touches, Array]:
        """Touches sorted by rank and buffer, else in their order; and the number of each pair."""
        rank, buffer = self.program.rank[touches.row], touches.buffer.astype(np.int64)
        columns = [(rank, self.program.world), (buffer, int(buffer.max(initial=0)) + 1)]
        order, place = places(columns)
        return touches.pick(order), place

    def runs(self, touches: Touches) -> Runs:
        """The runs of some touches, in their order."""
        everything = np.arange(len(touches))
        strided = np.flatnonzero(touches.layout >= 0)
        rough = np.zeros(len(touches), dtype=np.bool_)
        if not len(strided):
            return Runs(everything, touches.low, touches.high, rough)
        strided = strided[np.argsort(touches.layout[strided], kind="stable")]
        layout = touches.layout[strided]
        bounds = np.flatnonzero(np.concatenate([[True], layout[1:] != layout[:-1], [True]]))
        items, lows, highs, budget = [everything], [touches.low], [touches.high], _RUNS
        exact = np.zeros(len(touches), dtype=np.bool_)
        for start, stop in pairwise(bounds.tolist()):
            here, (starts, length) = strided[start:stop], self._cut(int(layout[start]))
            budget -= len(here) * len(starts)
            if budget < 0:
                rough[here] = True
                continue
            exact[here] = True
            low = (touches.low[here][:, None] + starts).reshape(-1)
            items.append(np.repeat(here, len(starts)))
            lows.append(low)
            highs.append(low + length)
        for columns in (items, lows, highs):
            columns[0] = columns[0][~exact]
        item = np.concatenate(items)
        order = np.argsort(item, kind="stable")
        item, low, high = item[order], np.concatenate(lows)[order], np.concatenate(highs)[order]
        return Runs(item, low, high, rough[item])

    @cached_property
    def _sizes(self) -> list[int]:
        """Per rank, how many rows and operands it has."""
        bounds = self.program.rank_start
        upto = np.concatenate([[0], np.cumsum(self.program.count, dtype=np.int64)])
        return np.diff(upto[bounds] + bounds).tolist()

    @cached_property
    def _broadcasts(self) -> bool:
        return bool((self.program.site_kind == Kind.BROADCAST).any())

    @property
    def _spans(self) -> bool:
        return bool(self.program.operands.layouts)

    @cached_property
    def _extents(self) -> tuple[Array, Array]:
        """Per layout how many elements it spans, and whether with gaps; last comes layout -1."""
        layouts = self.program.operands.layouts
        extent = [1 + sum((n - 1) * s for n, s in zip(*layout, strict=True)) for layout in layouts]
        gaps = [bool(_pieces(layout)[0]) for layout in layouts]
        return np.array([*extent, 0]), np.array([*gaps, False])

    def _cut(self, number: int) -> tuple[Array, int]:
        """Where the runs of a layout start, sorted, and how long each is."""
        outer, length = _pieces(self.program.operands.layouts[number])
        starts = np.zeros(1, dtype=np.int64)
        for size, stride in outer:
            if len(starts) * size > _RUNS:
                return np.broadcast_to(starts[0], _RUNS + 1), length  # too many, whatever they are
            starts = (starts[:, None] + np.arange(size) * stride).reshape(-1)
        return np.sort(starts), length


def _pieces(layout: Layout) -> tuple[list[tuple[int, int]], int]:
    """The dims (size, stride) that leave gaps, largest first, and the length of one run."""
    dims = sorted((s, n) for n, s in zip(*layout, strict=True) if n > 1)
    length = 1
    while dims and dims[0][0] == length:
        length *= dims.pop(0)[1]
    return [(n, s) for s, n in reversed(dims)], length
