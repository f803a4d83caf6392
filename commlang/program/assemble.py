"""From recorded chunks to the columns of a Program, in program order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.expand.arrays import broadcast, squeeze
from commlang.expand.run import MAX_EVENTS, expand
from commlang.operations import Access
from commlang.program.columns import Array, Nests, Operands, Program
from commlang.program.handles import join, number_handles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commlang.expand.arrays import Int
    from commlang.expand.groups import GroupEntry
    from commlang.expand.record import Chunk, Operand, Recording
    from commlang.expand.run import Shapes
    from commlang.resolve.modules import Definition

ACCESSES: tuple[Access, ...] = (Access.READ, Access.WRITE, Access.UPDATE)
_DENSE = 4
"""Program order is read off a bitmap of (rank, key) cells unless it has more cells per event."""


def build(
    definition: Definition,
    world: int,
    values: Mapping[str, Any] | None = None,
    *,
    shapes: Shapes | None = None,
    ranks: Iterable[int] | None = None,
    groups: Iterable[GroupEntry] = (),
    max_events: int = MAX_EVENTS,
) -> Program:
    """Expand a pattern and assemble its program; raises PatternError for faults on the way."""
    recording = expand(
        definition,
        world,
        values,
        shapes=shapes,
        ranks=ranks,
        groups=groups,
        max_events=max_events,
    )
    return assemble(recording)


def assemble(recording: Recording) -> Program:
    """The program of a recording; its chunks are used up."""
    chunks = recording.chunks
    keys = [chunk.key() for chunk in chunks]
    order = _Order(recording, keys)
    rows, count = order.rows, recording.events
    rank, key, rank_start = order.columns()
    chunk_of = np.empty(count, dtype=np.int32)
    for number, row in enumerate(rows):
        chunk_of[row] = number
    place = partial(_column, rows, chunk_of)
    operands, first, counts = _operands(chunks, rows, count)
    numbers, numbers_at = _numbers(chunks, rows, count)
    handles = number_handles(recording, rows, rank)
    return Program(
        world=recording.world,
        ranks=recording.ranks,
        definition=recording.definition,
        values=recording.values,
        shapes=recording.shapes,
        parameters=recording.parameters,
        tensors=recording.tensors,
        groups=recording.groups,
        sites=tuple(recording.sites),
        buffers=tuple(recording.buffers),
        rank=rank,
        key=key,
        nest=_nest_column(chunks, rows, count),
        site=place([c.site for c in chunks]),
        peer=place([c.peer for c in chunks]),
        tag=place([c.tag for c in chunks]),
        group=place([c.group for c in chunks]),
        first=first,
        count=counts,
        numbers_at=numbers_at,
        wait=join(handles, count),
        operands=operands,
        numbers=numbers,
        nests=_nests(chunks),
        handles=handles,
        rank_start=rank_start,
    )


class _Order:
    """The final row of each event: events sorted by (rank, key), which are all different."""

    def __init__(self, recording: Recording, keys: list[Array]) -> None:
        self.ranks = recording.ranks
        self.everyone = len(self.ranks) == recording.world
        self.span = recording.slots + 1
        places = [self._place(c, k) for c, k in zip(recording.chunks, keys, strict=True)]
        cells = len(self.ranks) * self.span
        if cells <= _DENSE * recording.events + (1 << 20):
            taken = np.zeros(cells, dtype=np.bool_)
            for place in places:
                taken[place] = True
            self.places = np.flatnonzero(taken)
            number = np.cumsum(taken, dtype=np.int32)
            self.rows: list[Array] = [number[place] - 1 for place in places]
        else:
            everything = np.concatenate(places)
            order = np.argsort(everything)
            self.places = everything[order]
            row = np.empty(len(order), dtype=np.int32)
            row[order] = np.arange(len(order), dtype=np.int32)
            ends = np.cumsum([len(place) for place in places])
            self.rows = np.split(row, ends[:-1])
        assert len(self.places) == recording.events, "two events share a place in program order"

    def _place(self, chunk: Chunk, key: Array) -> Array:
        rank = chunk.scope.ranks
        index = rank if self.everyone else np.searchsorted(self.ranks, rank)
        return index * self.span + key

    def columns(self) -> tuple[Array, Array, Array]:
        """The rank and key of every row, and the row at which each rank starts."""
        starts = np.arange(len(self.ranks) + 1, dtype=np.int64) * self.span
        rank_start = np.searchsorted(self.places, starts)
        sizes = np.diff(rank_start)
        rank = np.repeat(self.ranks.astype(np.int32), sizes)
        return rank, self.places - np.repeat(starts[:-1], sizes), rank_start


def _column(rows: list[Array], chunk_of: Array, values: Sequence[Int]) -> Array:
    """A column from the chunks' values: uniform ones are looked up, the others are placed."""
    table = np.array([0 if isinstance(v, np.ndarray) else v for v in values], dtype=np.int32)
    column = table[chunk_of] if len(table) else np.zeros(0, dtype=np.int32)
    for value, row in zip(values, rows, strict=True):
        if isinstance(value, np.ndarray):
            column[row] = value
    return column


def _nest_column(chunks: list[Chunk], rows: list[Array], count: int) -> Array:
    column = np.full(count, -1, dtype=np.int64)
    for chunk, row in zip(chunks, rows, strict=True):
        if chunk.nest is not None:
            column[row] = chunk.scope.key_of(chunk.nest.scope, chunk.nest.position)
    return column


def _nests(chunks: list[Chunk]) -> Nests:
    """All sequences inside `parallel:` and all constructs inside those."""
    keys: list[Array] = []
    parents: list[Array] = []
    sequence: list[Array] = []
    for chunk in chunks:
        nest = chunk.nest
        while nest is not None and nest.parent is not None:
            lanes = chunk.scope.lanes
            key = broadcast(chunk.scope.key_of(nest.scope, nest.position), lanes)
            parent = broadcast(chunk.scope.key_of(nest.parent.scope, nest.parent.position), lanes)
            key, index = np.unique(key, return_index=True)
            keys.append(key)
            parents.append(parent[index])
            sequence.append(np.full(len(key), nest.sequence))
            nest = nest.parent
    if not keys:
        none = np.zeros(0, dtype=np.int64)
        return Nests(none, none, none.astype(np.bool_))
    key, index = np.unique(np.concatenate(keys), return_index=True)
    return Nests(key, np.concatenate(parents)[index], np.concatenate(sequence)[index])


def _operands(chunks: list[Chunk], rows: list[Array], count: int) -> tuple[Operands, Array, Array]:
    """The operand columns, chunk after chunk; each event's operands lie together."""
    first = np.full(count, -1, dtype=np.int64)
    counts = np.zeros(count, dtype=np.int32)
    total = sum(_items(o, c.scope.lanes) for c in chunks for o in c.operands)
    columns = Operands(
        np.empty(total, dtype=np.int32),
        np.empty(total, dtype=np.int64),
        np.empty(total, dtype=np.int64),
        np.empty(total, dtype=np.int8),
        np.full(total, -1, dtype=np.int32),
        [],
    )
    layouts: dict[tuple[Any, ...], int] = {}
    start = 0
    for chunk, row in zip(chunks, rows, strict=True):
        lanes = chunk.scope.lanes
        if not chunk.operands:
            continue
        if all(o.count is None for o in chunk.operands):
            width = len(chunk.operands)
            first[row] = np.arange(start, start + lanes * width, width)
            counts[row] = width
            for place, operand in enumerate(chunk.operands):
                _write(
                    columns, slice(start + place, start + lanes * width, width), operand, layouts
                )
            start += lanes * width
            continue
        each = [broadcast(1 if o.count is None else o.count, lanes) for o in chunk.operands]
        total_each = np.sum(each, axis=0)
        begin = start + np.cumsum(total_each) - total_each
        first[row], counts[row] = begin, total_each
        for operand, number in zip(chunk.operands, each, strict=True):
            at = begin
            if operand.count is not None:
                ends = np.cumsum(number)
                within = np.arange(int(ends[-1]) if lanes else 0) - np.repeat(ends - number, number)
                at = np.repeat(begin, number) + within
            _write(columns, at, operand, layouts)
            begin = begin + number
        start += int(total_each.sum())
    return columns, first, counts


def _items(operand: Operand, lanes: int) -> int:
    if operand.count is None:
        return lanes
    return int(broadcast(operand.count, lanes).sum())


def _write(columns: Operands, at: Any, operand: Operand, layouts: dict[Any, int]) -> None:
    view = operand.view
    columns.buffer[at] = view.buffer
    columns.offset[at] = view.offset
    columns.length[at] = view.numel
    columns.access[at] = ACCESSES.index(operand.access)
    if not operand.shaped:
        return
    dims, items = len(view.shape), len(columns.buffer[at])
    parts = [squeeze(v) if isinstance(v, np.ndarray) else v for v in (*view.shape, *view.strides)]
    table, inverse = _distinct(parts, items)
    numbers: list[int] = []
    for line in table.tolist():
        layout = (tuple(line[:dims]), tuple(line[dims : 2 * dims]))
        number = layouts.setdefault(layout, len(layouts))
        if number == len(columns.layouts):
            columns.layouts.append(layout)
        numbers.append(number)
    columns.layout[at] = np.array(numbers, dtype=np.int32)[inverse]


def _distinct(parts: list[Any], items: int) -> tuple[Array, Array]:
    """The different rows of a table given by columns, and which one each item has."""
    if not any(isinstance(v, np.ndarray) for v in parts):
        return np.array([parts], dtype=np.int64), np.zeros(1, dtype=np.int64)
    table = np.stack([broadcast(v, items) for v in parts], axis=1)
    table, inverse = np.unique(table, axis=0, return_inverse=True)
    return table, inverse.reshape(-1)


def _numbers(chunks: list[Chunk], rows: list[Array], count: int) -> tuple[Array, Array]:
    numbers_at = np.full(count, -1, dtype=np.int64)
    parts: list[Array] = []
    start = 0
    for chunk, row in zip(chunks, rows, strict=True):
        if chunk.numbers:
            table = np.stack([broadcast(n, chunk.scope.lanes) for n in chunk.numbers], axis=1)
            numbers_at[row] = start + np.arange(len(table)) * table.shape[1]
            parts.append(table.reshape(-1))
            start += table.size
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64), numbers_at
