"""How many bytes of tensors each rank holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.expand.arrays import broadcast

if TYPE_CHECKING:
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
    keys, sizes = _memories(program, parameters)
    if (keys >= 0).any():
        np.add.at(found, *_touched(program, keys, sizes))
    return found


def _memories(program: Program, parameters: set[int]) -> tuple[Array, Array]:
    """Per buffer the memory that it lies in (-1: a parameter's), and the bytes of each memory."""
    most: dict[int, int] = {}
    for block in program.buffers:
        most[block.storage] = max(most.get(block.storage, 0), block.capacity * block.dtype.itemsize)
    numbers: dict[tuple[int, int], int] = {}
    sizes: list[int] = []
    count = sum(block.count for block in program.buffers)
    keys = np.full(count, -1, dtype=np.int64)
    for block in program.buffers:
        if block.base in parameters:
            continue
        for buffer in range(block.base, block.base + (block.count if block.distinct else 1)):
            key = (block.storage, buffer if block.distinct else -1)
            number = numbers.setdefault(key, len(sizes))
            if number == len(sizes):
                sizes.append(most[block.storage])
            keys[buffer : (buffer + 1 if block.distinct else block.base + block.count)] = number
    return keys, np.array(sizes, dtype=np.int64)


def _touched(program: Program, keys: Array, sizes: Array) -> tuple[Array, Array]:
    """Ranks and the bytes of the memories that they touch, each pair once."""
    counts = program.count.astype(np.int64)
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    operand = np.repeat(program.first, counts) + within
    memory = keys[program.operands.buffer[operand]]
    pair = np.repeat(program.rank, counts) * len(sizes) + memory
    pair = np.unique(pair[memory >= 0])
    return pair // len(sizes), sizes[pair % len(sizes)]
