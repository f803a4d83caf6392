"""The operands of events as regions of the number line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.contracts.regions import spread
from commlang.contracts.strides import joint_runs
from commlang.expand.values import row_major

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.contracts.addresses import Addresses
    from commlang.program import Program
    from commlang.program.columns import Array

Shape = tuple[tuple[int, ...], tuple[int, ...]]


class Operands:
    """Address and length of each operand, and where those of a row start."""

    def __init__(self, program: Program, addresses: Addresses) -> None:
        columns = program.operands
        rows = np.flatnonzero(program.count)
        operand, owner = spread(program.first[rows], program.count[rows].astype(np.int64))
        rank = np.zeros(len(columns.buffer), dtype=np.int32)
        rank[operand] = program.rank[rows][owner]
        buffer = columns.buffer.astype(np.int64)
        self.address = addresses.of(rank, buffer) + columns.offset
        self.length = columns.length
        self.layout = columns.layout
        self.access = columns.access
        self.first = program.first
        self.count = program.count
        self._layouts: list[Shape] = columns.layouts
        self._block = addresses.block(buffer) if len(buffer) else buffer
        self._given = np.array([b.scope is None for b in addresses.blocks], dtype=np.bool_)
        self.dtypes = list(dict.fromkeys(block.dtype for block in addresses.blocks))
        self._dtype = np.array([self.dtypes.index(b.dtype) for b in addresses.blocks], dtype=int)

    def dtype_number(self, operand: Array) -> Array:
        """The index in `dtypes` of the dtype of each operand's elements."""
        return self._dtype[self._block[operand]]

    def is_parameter(self, operand: Array) -> Array:
        """Whether operands lie in parameters of the pattern."""
        return self._given[self._block[operand]]

    def contiguous(self, operand: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Operands as contiguous runs: index, where it starts, its place in the operand, length."""
        flat = self.layout[operand] < 0
        plain = np.flatnonzero(flat)
        yield plain, self.address[operand[plain]], plain * 0, self.length[operand[plain]]
        layouts = self.layout[operand]
        for layout in sorted(set(layouts[~flat].tolist())):
            chosen = np.flatnonzero(layouts == layout)
            shape, strides = self._layouts[int(layout)]
            places: Any = row_major(shape)
            first, place, run = joint_runs(shape, strides, places)
            index = np.repeat(chosen, len(first))
            start = self.address[operand[index]] + np.tile(first, len(chosen))
            yield index, start, np.tile(place, len(chosen)), np.full(len(index), run)

    def shape(self, operand: int) -> Shape:
        """The shape and the strides of an operand."""
        layout = int(self.layout[operand])
        return self._layouts[layout] if layout >= 0 else ((int(self.length[operand]),), (1,))

    def dims(self, operand: Array) -> list[Array]:
        """The shapes of operands of one number of dims: an array for each dim."""
        kinds, kind = np.unique(self.layout[operand], return_inverse=True)
        shapes: list[tuple[int, ...]] = [self._layouts[number][0] for number in kinds.tolist()]
        return list(np.array(shapes, dtype=np.int64).reshape(len(shapes), -1)[kind.reshape(-1)].T)

    def runs(self, one: Array, other: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Pairs of operands of one shape as contiguous runs.

        Each part holds the index of a pair, where the run starts in both operands, and its length.
        """
        flat = (self.layout[one] < 0) & (self.layout[other] < 0)
        plain = np.flatnonzero(flat)
        yield plain, self.address[one[plain]], self.address[other[plain]], self.length[one[plain]]
        strided = np.flatnonzero(~flat)
        if not len(strided):
            return
        a, b = (self.layout[side[strided]].astype(np.int64) for side in (one, other))
        length = self.length[one[strided]]
        # An operand without a layout is contiguous, whatever the other's shape.
        key = np.stack([a, b, np.where((a < 0) | (b < 0), length, 0)], axis=1)
        kinds, kind = np.unique(key, axis=0, return_inverse=True)
        for number in range(len(kinds)):
            chosen = strided[kind.reshape(-1) == number]
            shape, strides = self._joint(int(one[chosen[0]]), int(other[chosen[0]]))
            first, second, run = joint_runs(shape, *strides)
            pair = np.repeat(chosen, len(first))
            yield (
                pair,
                self.address[one[pair]] + np.tile(first, len(chosen)),
                self.address[other[pair]] + np.tile(second, len(chosen)),
                np.full(len(pair), run, dtype=np.int64),
            )

    def _joint(self, one: int, other: int) -> tuple[tuple[int, ...], list[Any]]:
        """One shape for both operands, and the strides of each in it."""
        shapes = [self.shape(operand) for operand in (one, other)]
        layouts = [int(self.layout[operand]) for operand in (one, other)]
        shape = shapes[0][0] if layouts[0] >= 0 else shapes[1][0]
        strides = [
            s[1] if layout >= 0 else row_major(shape)
            for s, layout in zip(shapes, layouts, strict=True)
        ]
        return shape, strides
