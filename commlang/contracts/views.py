"""Views in contracts as regions: address and runs, by lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.contracts.strides import joint_runs
from commlang.expand import arrays
from commlang.expand.values import row_major
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.expand.arrays import Int
    from commlang.expand.values import View
    from commlang.program.columns import Array

FINAL, OLD = 0, 1
"""What the buffer of a view says: the value at the end (or a result), or the one at entry."""


@record
class Run:
    """Contiguous parts of views, by lane: where they start in two of them, and their length."""

    lane: Array
    one: Array
    other: Array
    length: Array


def is_single(*views: View | None) -> bool:
    """Whether views are the same on all lanes."""
    numbers = [n for v in views if v for n in (v.buffer, v.offset, *v.shape, *v.strides)]
    return all(isinstance(n, int) for n in numbers)


def joint(one: View, other: View | None, start: Int, lanes: int) -> Run:
    """Both views, lane by lane, as runs; without another one, it is contiguous from `start` on."""
    strides = row_major(one.shape) if other is None else other.strides
    base = start if other is None else other.offset
    first, second = (arrays.broadcast(n, lanes) for n in (one.offset, base))
    plain = _contiguous(one.shape, one.strides, lanes) & _contiguous(one.shape, strides, lanes)
    numel = arrays.broadcast(one.numel, lanes)
    if plain.all():
        return Run(np.arange(lanes), first, second, numel)
    parts = [(np.flatnonzero(plain), first[plain], second[plain], numel[plain])]
    for chosen, shape, a, b in _kinds(one.shape, one.strides, strides, np.flatnonzero(~plain)):
        left, right, length = joint_runs(shape, a, b)
        lane = np.repeat(chosen, len(left))
        left, right = np.tile(left, len(chosen)), np.tile(right, len(chosen))
        parts.append((lane, first[lane] + left, second[lane] + right, np.full(len(lane), length)))
    return Run(*map(np.concatenate, zip(*parts, strict=True)))


def _contiguous(shape: tuple[Int, ...], strides: tuple[Int, ...], lanes: int) -> Array:
    result: Any = np.ones(lanes, dtype=np.bool_)
    expected: Int = 1
    for dim, stride in zip(reversed(shape), reversed(strides), strict=True):
        result = result & ((stride == expected) | (dim <= 1))
        expected = expected * dim
    return result | np.asarray(expected == 0)


def _kinds(
    shape: tuple[Int, ...], one: tuple[Int, ...], other: tuple[Int, ...], lanes: Array
) -> Iterator[tuple[Array, Any, Any, Any]]:
    """Lanes by the numbers that their shape and strides are."""
    dims = len(shape)
    table = np.stack(
        [
            n[lanes] if isinstance(n, np.ndarray) else np.full(len(lanes), n)
            for n in (*shape, *one, *other)
        ],
        axis=1,
    )
    rows, kind = np.unique(table, axis=0, return_inverse=True)
    for number, row in enumerate(rows.tolist()):
        chosen = lanes[kind.reshape(-1) == number]
        yield chosen, row[:dims], row[dims : 2 * dims], row[2 * dims :]
