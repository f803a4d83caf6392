"""Calls of collectives with what decides their traffic; equal calls of a rank count as one.

What a rank sends in a collective follows from its own call: its place in the group, the root and
the sizes that it names. So nothing here looks at who meets whom, and a rank's calls of one
statement with the same sizes are counted once and multiplied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.sorting import combine, stable_order
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program


@record
class Lengths:
    """How many elements operands have: each, and all that stand before it in the columns."""

    each: Array
    upto: Array
    itemsize: Array
    """Bytes of an element, by site."""

    @classmethod
    def of(cls, program: Program) -> Lengths:
        """The lengths of a program's operands."""
        each = program.operands.length
        itemsize = np.array([d.itemsize if d else 0 for d in program.site_dtype], dtype=np.int64)
        return cls(each, np.concatenate([[0], np.cumsum(each)]), itemsize)


@record
class Calls:
    """Calls of one kind of collective, one entry for each rank's equal calls.

    `row` is the first of `times` equal rows. `size` counts the members of the group, `place` and
    `root` are the caller's and the root's places among them (-1: there is no root). `whole` is the
    longer side of the data in elements: what all members together hold; of broadcast, reduce and
    all_reduce the tensor, of gather what the caller gives. `parts` is the operand at which the
    list of the longer side starts, -1 where it is one tensor, cut evenly.
    """

    program: Program
    lengths: Lengths
    row: Array
    times: Array
    size: Array
    place: Array
    root: Array
    whole: Array
    parts: Array

    def __len__(self) -> int:
        return len(self.row)

    @property
    def bytes(self) -> Array:
        """The bytes of `whole`."""
        return self.whole * self._itemsize()

    def part(self, place: Array, index: Array | None = None) -> Array:
        """The bytes of the part of `whole` that belongs to a place, of all calls or those given.

        A tensor is cut as evenly as can be; the first parts are longer by an element.
        """
        at = np.arange(len(self)) if index is None else index
        whole, size = self.whole[at], self.size[at]
        length = whole // size + (place < whole % size)
        listed = self.parts[at] >= 0
        if listed.any():
            length[listed] = self.lengths.each[self.parts[at][listed] + place[listed]]
        return length * self._itemsize()[at]

    def next(self, step: int | Array = 1) -> Array:
        """The place that many steps after the caller's, around the group."""
        return (self.place + step) % self.size

    def virtual(self) -> Array:
        """The caller's place counted from the root."""
        return (self.place - np.maximum(self.root, 0)) % self.size

    def actual(self, virtual: Array, index: Array) -> Array:
        """The place of one counted from the root, for the calls at `index`."""
        return (virtual + np.maximum(self.root[index], 0)) % self.size[index]

    def _itemsize(self) -> Array:
        return self.lengths.itemsize[self.program.site[self.row]]


def calls_of(program: Program, kind: Kind, lengths: Lengths) -> Calls:
    """The calls of a kind by groups of two members or more."""
    row = np.flatnonzero(program.kind == kind)
    row = row[np.asarray(program.groups.size(program.group[row])) > 1] if len(row) else row
    first, begin, end = _longer_side(program, kind, row)
    whole = lengths.upto[first + end] - lengths.upto[first + begin]
    listed = end - begin > 1
    row, times, chosen = _equal(program, row, whole, listed)
    group, rank, peer = program.group[row], program.rank[row], program.peer[row]
    table, none = program.groups, np.zeros(0, dtype=np.int64)
    return Calls(
        program,
        lengths,
        row,
        times,
        size=np.asarray(table.size(group), dtype=np.int64) if len(row) else none,
        place=np.asarray(table.position(group, rank), dtype=np.int64) if len(row) else none,
        root=np.asarray(table.position(group, peer), dtype=np.int64) if len(row) else none,
        whole=whole[chosen],
        parts=np.where(listed, first + begin, -1)[chosen],
    )


def _longer_side(program: Program, kind: Kind, row: Array) -> tuple[Array, Array, Array]:
    """The first operand of each row, and from which to which of its operands the longer side goes.

    The output comes first, of scatter and gather the leaves have only their own tensor.
    """
    first, count = np.maximum(program.first[row], 0), program.count[row].astype(np.int64)
    zero = np.zeros_like(count)
    match kind:
        case Kind.ALL_GATHER:
            return first, zero, count - 1
        case Kind.REDUCE_SCATTER | Kind.SCATTER:
            return first, zero + 1, count
        case Kind.ALL_TO_ALL:
            return first, count // 2, count
        case Kind.GATHER:
            return first, count - 1, count
        case _:
            return first, zero, count


def _equal(program: Program, row: Array, whole: Array, listed: Array) -> tuple[Array, Array, Array]:
    """The first of each set of equal rows, how many there are, and its index in `row`.

    Rows with a list stay apart: what they name takes as much room as what they send.
    """
    if not len(row):
        return row, row, row
    apart = np.where(listed, np.arange(1, len(row) + 1), 0)
    columns = (
        (program.rank[row], program.world),
        (program.site[row], len(program.sites)),
        (program.group[row], len(program.groups.entries)),
        (program.peer[row] + 1, program.world + 1),
        (apart, int(apart.max()) + 1),
        (whole, int(whole.max()) + 1),
    )
    key = combine([(values.astype(np.int64), bound) for values, bound in columns])
    order = stable_order(key)
    ordered = key[order]
    fresh = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    chosen = order[fresh]
    return row[chosen], np.diff(np.append(fresh, len(row))), chosen
