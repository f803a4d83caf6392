"""Chunks: large operations that pass the same data on are split, so that they run as a pipeline.

A rank that receives x and then sends it on, or an all_reduce inside nodes that is followed by one
across nodes, does nothing while the first is under way. Split into pieces, the second works on one
piece while the first works on the next. That takes an operation which treats each element by
itself: messages, broadcast, reduce, all_reduce, and local copies, sums, scalings and fills.

Everything that meets or depends on what is split is split alike, or nothing of it is. Sums of
floats over more than two ranks may be rounded otherwise than in one piece, since a backend adds the
elements of a buffer in an order that depends on their place in it. All else is the same to the bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Access, Kind
from commlang.program.assemble import ACCESSES
from commlang.program.matching import match_collectives, match_messages
from commlang.records import record
from commlang.schedule.rebuild import without_handles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlang.program import Program
    from commlang.program.columns import Array

PIECE = 2 << 20
"""Bytes of a piece, at least; `benchmarks/schedule.py` measures it."""
PIECES = 8
"""Pieces of an operation, at most."""
MOST = 10_000
"""Statement instances that a plan lists at most."""

_TALK = (Kind.SEND, Kind.RECV, Kind.ALL_REDUCE, Kind.REDUCE, Kind.BROADCAST)
_WORK = (Kind.COPY, Kind.ACCUMULATE, Kind.SCALE, Kind.FILL)


@record
class Chunk:
    """The statement instance with a key is split into `pieces` on all of its ranks."""

    key: int
    pieces: int


def chunks(program: Program) -> list[Chunk] | str:
    """What is worth splitting in a program of all ranks; or why nothing is."""
    pieces = _pieces(program)
    rows = np.flatnonzero(pieces > 1)
    if not len(rows):
        return f"no operation is of {2 * PIECE >> 20} MiB or more"
    sets = _Sets()
    for row in rows.tolist():
        sets.add(int(program.key[row]), int(pieces[row]))
    for row, other in _meetings(program):
        sets.tie(int(program.key[row]), int(program.key[other]))
    for row, other, pays in _passed_on(program, rows):
        sets.tie(int(program.key[row]), int(program.key[other]), pays)
    _spoil(program, pieces, sets)
    found = [Chunk(key, count) for key, count in sets.worth()]
    if not found:
        return "no large operation passes on what another one brings"
    if len(found) > MOST:
        return f"{len(found):,} statements would be split, more than a plan lists ({MOST:,})"
    return found


def split(program: Program, listed: Sequence[Chunk]) -> Program:
    """The program with these statement instances in pieces, whose waits are to be placed anew."""
    times = piece_counts(program, listed)
    rows = np.repeat(np.arange(len(program)), times)
    start = np.cumsum(times) - times
    piece = np.arange(len(rows)) - start[rows]
    most = int(times.max(initial=1))
    columns = {name: getattr(program, name)[rows] for name in _COLUMNS}
    columns["key"] = columns["key"] * most + piece
    columns["nest"] = np.where(columns["nest"] < 0, -1, columns["nest"] * most)
    nests = program.nests
    parent = np.where(nests.parent < 0, -1, nests.parent * most)
    bounds = np.append(start, len(rows))
    whole = replace(
        program,
        **columns,
        nests=replace(nests, key=nests.key * most, parent=parent),
        rank_start=bounds[program.rank_start],
    )
    return without_handles(_cut(whole, piece, times[rows]))


_COLUMNS = ("rank", "key", "nest", "site", "peer", "tag", "group", "first", "count", "numbers_at")


def piece_counts(program: Program, listed: Sequence[Chunk]) -> Array:
    """Per row, how many pieces it becomes."""
    known = np.array(sorted((c.key, c.pieces) for c in listed), dtype=np.int64).reshape(-1, 2)
    at = np.minimum(np.searchsorted(known[:, 0], program.key), len(known) - 1)
    return np.where(known[at, 0] == program.key, known[at, 1], 1)


def _cut(program: Program, piece: Array, of: Array) -> Program:
    """The program with operands of their own, a part of the whole, for rows that are pieces."""
    ops = program.operands
    rows = np.flatnonzero(of > 1)
    owner = np.repeat(rows, program.count[rows])
    starts = np.cumsum(program.count[rows]) - program.count[rows]
    old = np.repeat(program.first[rows] - starts, program.count[rows]) + np.arange(len(owner))
    length = ops.length[old]
    low = length * piece[owner] // of[owner]
    high = length * (piece[owner] + 1) // of[owner]
    first = program.first.copy()
    first[rows] = len(ops.buffer) + starts
    operands = replace(
        ops,
        buffer=np.append(ops.buffer, ops.buffer[old]),
        offset=np.append(ops.offset, ops.offset[old] + low),
        length=np.append(ops.length, high - low),
        access=np.append(ops.access, ops.access[old]),
        layout=np.append(ops.layout, ops.layout[old]),
    )
    return replace(program, first=first, operands=operands)


def _pieces(program: Program) -> Array:
    """Per row into how many pieces it may be split: 1 if it may not."""
    ops = program.operands
    kinds = np.array([kind in (*_TALK, *_WORK) for kind in Kind], dtype=np.bool_)
    rows = np.flatnonzero(kinds[program.kind] & (program.nest < 0) & (program.count > 0))
    size = np.array([d.itemsize if d else 0 for d in program.site_dtype], dtype=np.int64)
    first, last = program.first[rows], program.first[rows] + program.count[rows] - 1
    plain = (ops.layout[first] < 0) & (ops.layout[last] < 0) & (program.count[rows] <= 2)
    plain &= ops.length[first] == ops.length[last]
    bytes_ = ops.length[first] * size[program.site[rows]]
    result = np.ones(len(program), dtype=np.int64)
    result[rows] = np.where(plain, np.clip(bytes_ // PIECE, 1, PIECES), 1)
    return result


def _meetings(program: Program) -> Iterator[tuple[int, int]]:
    """Rows that meet: both ends of messages, and each call of a collective with the first."""
    messages = match_messages(program)
    yield from zip(messages.send.tolist(), messages.recv.tolist(), strict=True)
    calls = match_collectives(program)
    first = np.repeat(calls.row[calls.start[:-1]], np.diff(calls.start))
    yield from zip(first.tolist(), calls.row.tolist(), strict=True)


def _passed_on(program: Program, rows: Array) -> Iterator[tuple[int, int, bool]]:
    """Of rows that may be split, those that depend on one another, and whether a pipeline pays.

    It pays from one operation to another that goes elsewhere, also by way of local work.
    """
    last: dict[tuple[int, int, int], tuple[int, int | None]] = {}
    for row in rows.tolist():
        before = [last[place] for place in _places(program, row) if place in last]
        came = row if program.kind[row] in _TALK else None
        for other, source in before:
            pays = came is not None and source is not None and _elsewhere(program, source, row)
            yield other, row, pays
        origin = came if came is not None else next((s for _, s in before if s is not None), None)
        for place in _places(program, row):
            if place not in last or _writes(program, row):
                last[place] = (row, origin)


def _elsewhere(program: Program, row: int, other: int) -> bool:
    """Whether two operations use other links, so that they can run at the same time."""
    if program.is_message[row] and program.is_message[other]:
        return bool(program.peer[row] != program.peer[other])
    return bool(program.group[row] != program.group[other])


def _places(program: Program, row: int) -> set[tuple[int, int, int]]:
    """The rank's memory that a row works on, as buffer and first element."""
    first = int(program.first[row])
    ops, rank = program.operands, int(program.rank[row])
    every = range(first, first + int(program.count[row]))
    return {(rank, int(ops.buffer[at]), int(ops.offset[at])) for at in every}


def _writes(program: Program, row: int) -> bool:
    first = int(program.first[row])
    access = program.operands.access[first : first + int(program.count[row])]
    return bool((access != ACCESSES.index(Access.READ)).any())


def _spoil(program: Program, pieces: Array, sets: _Sets) -> None:
    """Leave whole what has a key with an event that cannot be split, or with two on one rank."""
    known = np.array(sorted(sets.parent), dtype=np.int64)
    rows = np.flatnonzero(np.isin(program.key, known))
    for row in rows[pieces[rows] == 1].tolist():
        sets.spoil(int(program.key[row]))
    pairs = np.stack([program.key[rows], program.rank[rows]])
    found, count = np.unique(pairs, axis=1, return_counts=True)
    for key in found[0, count > 1].tolist():
        sets.spoil(int(key))


class _Sets:
    """Keys that are split together, or not at all."""

    def __init__(self) -> None:
        self.parent: dict[int, int] = {}
        self._pieces: dict[int, int] = {}
        self._pays: set[int] = set()
        self._spoilt: set[int] = set()

    def add(self, key: int, pieces: int) -> None:
        """A key whose events may be split into so many pieces."""
        self.parent.setdefault(key, key)
        if self._pieces.setdefault(key, pieces) != pieces:
            self.spoil(key)

    def tie(self, key: int, other: int, pays: bool = False) -> None:
        """Two keys that go together; one that cannot be split spoils the other."""
        if key not in self.parent or other not in self.parent:
            self._spoilt.update({key, other} & self.parent.keys())
            return
        if self._pieces[key] != self._pieces[other]:
            self.spoil(key)
        self.parent[self._root(key)] = self._root(other)
        if pays:
            self._pays.add(key)

    def spoil(self, key: int) -> None:
        """Leave whole whatever goes with a key."""
        self._spoilt.add(key)

    def worth(self) -> list[tuple[int, int]]:
        """Keys and pieces of the sets that can be split, and in which that pays."""
        spoilt = {self._root(key) for key in self._spoilt}
        pays = {self._root(key) for key in self._pays} - spoilt
        return [(key, n) for key, n in sorted(self._pieces.items()) if self._root(key) in pays]

    def _root(self, key: int) -> int:
        while self.parent[key] != key:
            self.parent[key] = self.parent[self.parent[key]]
            key = self.parent[key]
        return key
