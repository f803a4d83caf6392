"""One number line for the elements of all buffers of all ranks, and for what contracts compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record

if TYPE_CHECKING:
    from commlang.expand.record import BufferBlock
    from commlang.program import Program
    from commlang.program.columns import Array

LIMIT = 1 << 61
MAX_CELLS = 1 << 24
"""Most regions, and most runs of a strided view: about a gigabyte in all."""


class TooLarge(Exception):
    """The proof would take more memory or time than it may; the text says of what."""


@record
class Place:
    """An element: `index` counts in row-major order of the buffer's shape on that rank."""

    rank: int
    block: BufferBlock
    index: int


class Addresses:
    """Where the elements of each buffer lie: block after block, buffer after buffer, by rank."""

    def __init__(self, program: Program) -> None:
        self.world = program.world
        self.blocks = program.buffers
        self._first = program.buffer_base
        self._capacity = np.array([b.capacity for b in program.buffers], dtype=np.int64)
        start, ends = 0, [0]
        for block in program.buffers:
            start += block.count * program.world * block.capacity
            ends.append(start)
        if start >= LIMIT:
            raise TooLarge(f"its buffers hold {start:,} elements in all")
        self._start = np.array(ends[:-1], dtype=np.int64)
        self.end = start
        """The first address behind all buffers."""

    def block(self, buffer: Array) -> Array:
        """The declaration, by number, that each buffer belongs to."""
        return np.searchsorted(self._first, buffer, side="right") - 1

    def of(self, rank: Array, buffer: Array) -> Array:
        """The address of the first element of a buffer on a rank."""
        block = self.block(buffer)
        number = (buffer - self._first[block]) * self.world + rank
        return self._start[block] + number * self._capacity[block]

    def place(self, address: int) -> Place | None:
        """The element at an address; None behind the buffers."""
        if address >= self.end:
            return None
        block = int(np.searchsorted(self._start, address, side="right")) - 1
        while not self.blocks[block].capacity:  # blocks without elements start where the next does
            block -= 1
        within = address - int(self._start[block])
        number, index = divmod(within, self.blocks[block].capacity)
        return Place(number % self.world, self.blocks[block], index)


class Shelf:
    """Addresses behind the buffers, for intermediate results, handed out in order."""

    def __init__(self, start: int) -> None:
        self.end = start

    def take(self, lengths: Array) -> Array:
        """The first address of each of several new regions."""
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        start = self.end
        if start + total >= LIMIT:
            raise TooLarge("the contract computes with too many elements")
        self.end = start + total
        return start + ends - lengths
