"""Two strided views of one shape, as pairs of contiguous runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts.addresses import MAX_CELLS, TooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program.columns import Array


def joint_runs(
    shape: Sequence[int], one: Sequence[int], other: Sequence[int]
) -> tuple[Array, Array, int]:
    """Where runs start that are contiguous in both views, relative to each, and how long they are.

    The runs come in row-major order of the shape.
    """
    dims = [(n, a, b) for n, a, b in zip(shape, one, other, strict=True) if n != 1]
    merged: list[tuple[int, int, int]] = []
    for n, a, b in dims:
        if merged and merged[-1][1] == n * a and merged[-1][2] == n * b:
            merged[-1] = (merged[-1][0] * n, a, b)
        else:
            merged.append((n, a, b))
    length = 1
    if merged and merged[-1][1:] == (1, 1):
        length = merged.pop()[0]
    if math.prod(n for n, _, _ in merged) > MAX_CELLS:
        raise TooLarge("a strided view falls into too many runs")
    first = second = np.zeros(1, dtype=np.int64)
    for n, a, b in merged:
        steps = np.arange(n, dtype=np.int64)
        first = (first[:, None] + steps * a).reshape(-1)
        second = (second[:, None] + steps * b).reshape(-1)
    return first, second, length
