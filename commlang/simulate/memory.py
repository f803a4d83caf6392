"""How many bytes of tensors each rank holds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from commlang.expand.arrays import broadcast

if TYPE_CHECKING:
    from commlang.expand.arrays import Int
    from commlang.expand.record import BufferBlock
    from commlang.program.columns import Array, Program


def peak_memory(program: Program) -> Array:
    """Bytes per rank: its parameters, and the temps that it touches.

    The executor keeps temps from run to run, so that the most is also what stays. Iterations of a
    loop share a temp's memory unless they run side by side.
    """
    found = np.zeros(program.world, dtype=np.int64)
    parameters: set[int] = set()
    for view in program.tensors.values():
        found += broadcast(view.numel, program.world) * view.dtype.itemsize
        first = view.buffer if isinstance(view.buffer, int) else int(view.buffer[0])
        parameters.add(program.buffer_of(first).base)
    keys, storage = _memories(program, parameters)
    if (keys >= 0).any():
        rank, memory = _touched(program, keys, len(storage))
        np.add.at(found, rank, _sizes(program)[storage[memory], rank])
    return found


def _memories(program: Program, parameters: set[int]) -> tuple[Array, Array]:
    """Per buffer the memory that it lies in (-1: a parameter's), and the storage of each memory."""
    numbers: dict[tuple[int, int], int] = {}
    storages: list[int] = []
    count = sum(block.count for block in program.buffers)
    keys = np.full(count, -1, dtype=np.int64)
    for block in program.buffers:
        if block.base in parameters:
            continue
        for buffer in range(block.base, block.base + (block.count if block.distinct else 1)):
            key = (block.storage, buffer if block.distinct else -1)
            number = numbers.setdefault(key, len(storages))
            if number == len(storages):
                storages.append(block.storage)
            keys[buffer : (buffer + 1 if block.distinct else block.base + block.count)] = number
    return keys, np.array(storages, dtype=np.int64)


def _sizes(program: Program) -> Array:
    """The bytes of one memory of each storage on each rank, which may differ: (storages, world)."""
    count = 1 + max(block.storage for block in program.buffers)
    found = np.zeros((count, program.world), dtype=np.int64)
    for block in program.buffers:
        size = _elements(block, program.world) * block.dtype.itemsize
        found[block.storage] = np.maximum(found[block.storage], size)
    return found


def _elements(block: BufferBlock, world: int) -> Int:
    """Elements on each rank, where the block tells which rank is which, else the most of any."""
    # One buffer for each rank, if there are as many as ranks.
    if block.count > 1 or any(not isinstance(n, int) and len(n) != world for n in block.shape):
        return block.capacity
    return math.prod(block.shape, start=1)


def _touched(program: Program, keys: Array, memories: int) -> tuple[Array, Array]:
    """Ranks and the memories that they touch, each pair once."""
    counts = program.count.astype(np.int64)
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    operand = np.repeat(program.first, counts) + within
    memory = keys[program.operands.buffer[operand]]
    pair = np.repeat(program.rank, counts) * memories + memory
    pair = np.unique(pair[memory >= 0])
    return pair // memories, pair % memories
