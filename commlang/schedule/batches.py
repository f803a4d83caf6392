"""Batches: messages of a group that a rank starts one after the other are started as one.

On NCCL a batch is one launch, in which messages of both directions move at the same time; alone,
each is a kernel of its own and waits for the one before. Elsewhere a batch is a loop, which saves
nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from commlang.program import Program

MOST = 256
"""Messages of a batch, at most: NCCL may mix up more (CL253)."""


def batched(program: Program) -> Program | None:
    """The program with neighbouring starts in one `parallel:` each; None if there are none.

    Two messages one way between the same ranks stay apart, since a batch has no order. What a rank
    gets does not depend on which other ranks the program has.
    """
    nest = program.nest.copy()
    can = program.is_message & program.site_async[program.site] & (nest < 0)
    met: set[tuple[int, int]] = set()
    size = 0
    for row in np.flatnonzero(can).tolist():
        way = (int(program.kind[row]), int(program.peer[row]))
        if size and (not _beside(program, can, row) or way in met or size == MOST):
            met, size = set[tuple[int, int]](), 0
        if size:
            first = row - size
            nest[first : row + 1] = program.key[first]
        met.add(way)
        size += 1
    if (nest == program.nest).all():
        return None
    return replace(program, nest=nest)


def _beside(program: Program, can: np.ndarray, row: int) -> bool:
    """Whether the row before is one that a row may share a batch with."""
    if not can[row - 1]:
        return False
    same = program.group[row - 1] == program.group[row]
    return bool(same and program.rank[row - 1] == program.rank[row])
