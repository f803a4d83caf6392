"""Traffic as columns: who sends how many bytes to whom, by statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.program.sorting import combine, stable_order
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program.columns import Array


COLUMNS = ("src", "dst", "bytes", "messages", "row")


@record
class Traffic:
    """Who sends how many bytes to whom, in how many messages, over a whole run.

    An entry stands for all that one rank sends to another by one statement: `src` and `dst` are
    ranks of the world, `row` is the first row of `src` that sends it. Entries are sorted by
    `src`, `dst` and `row`. Barriers have messages of no bytes.
    """

    world: int
    src: Array
    dst: Array
    bytes: Array
    messages: Array
    row: Array

    def __len__(self) -> int:
        return len(self.src)

    @property
    def sent(self) -> Array:
        """Bytes that each rank sends: int64 (world,)."""
        return sums(self.src, self.bytes, self.world)

    @property
    def received(self) -> Array:
        """Bytes that each rank receives: int64 (world,)."""
        return sums(self.dst, self.bytes, self.world)

    @property
    def total(self) -> int:
        """All bytes that are sent."""
        return int(self.bytes.sum())

    @property
    def count(self) -> int:
        """All messages that are sent."""
        return int(self.messages.sum())

    def pairs(self) -> Traffic:
        """The same with one entry for each pair of ranks, whatever the statement."""
        columns = (self.bytes, self.messages, self.row)
        return collected(self.world, self.src, self.dst, np.zeros_like(self.src), *columns)

    def matrix(self, blocks: int | None = None) -> Array:
        """Bytes from each rank (row) to each (column): int64 (world, world).

        With `blocks`, the world is cut into that many blocks of ranks that follow one another,
        as evenly as can be, and the result is (blocks, blocks).
        """
        size = self.world if blocks is None else min(blocks, self.world)
        block = np.arange(self.world) * size // max(self.world, 1)
        cell = block[self.src] * size + block[self.dst]
        return sums(cell, self.bytes, size * size).reshape(size, size)


def sums(index: Array, values: Array, size: int) -> Array:
    """Per index below `size` the sum of its values, exact in int64."""
    result = np.zeros(size, dtype=np.int64)
    np.add.at(result, index, values)
    return result


def collected(
    world: int, src: Array, dst: Array, kind: Array, size: Array, messages: Array, row: Array
) -> Traffic:
    """Columns as traffic with one entry for each `src`, `dst` and `kind`, of the first row."""
    if not len(src):
        return Traffic(world, src, dst, size, messages, row)
    columns = [(src, world), (dst, world), (kind, int(kind.max()) + 1)]
    key = combine([(values.astype(np.int64), bound) for values, bound in columns])
    order = stable_order(key)
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    keep = order[first]
    return Traffic(
        world,
        src[keep],
        dst[keep],
        np.add.reduceat(size[order], first),
        np.add.reduceat(messages[order], first),
        np.minimum.reduceat(row[order], first),
    )


def joined(world: int, parts: Sequence[Traffic], kind_of_row: Array) -> Traffic:
    """All entries of some traffic, sorted, one for each `src`, `dst` and kind of row."""
    some = [part for part in parts if len(part)] or list(parts[:1])
    if len(some) == 1:
        found = some[0]  # which has one entry for each already
    else:
        columns = {name: np.concatenate([getattr(p, name) for p in some]) for name in COLUMNS}
        src, dst, size, messages, row = columns.values()
        found = collected(world, src, dst, kind_of_row[row], size, messages, row)
    keys = [(found.src, world), (found.dst, world), (found.row, len(kind_of_row))]
    order = stable_order(combine(keys)) if len(found) else found.row
    return Traffic(world, *(getattr(found, name)[order] for name in COLUMNS))
