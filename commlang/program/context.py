"""The loop variables of an event, found by expanding its rank alone once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.expand.run import expand

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.program.columns import Program


def loop_variables(program: Program, rows: Iterable[int]) -> dict[int, str]:
    """For each row, `s = 5, m = 2`: the loop variables around its event ("" for none).

    Expanding one rank costs the world's share of the whole, so messages can afford it where
    keeping every loop variable of every event would not be.
    """
    by_rank: dict[int, list[int]] = {}
    for row in rows:
        by_rank.setdefault(int(program.rank[row]), []).append(row)
    found: dict[int, str] = {}
    for rank, wanted in by_rank.items():
        found |= _of_rank(program, rank, wanted)
    return found


def _of_rank(program: Program, rank: int, rows: list[int]) -> dict[int, str]:
    recording = expand(
        program.definition,
        program.world,
        program.values,
        shapes=program.shapes,
        ranks=[rank],
        groups=program.groups.entries[1:],
        keep_values=True,
    )
    chunk_keys = [chunk.key() for chunk in recording.chunks]
    order = np.sort(np.concatenate(chunk_keys))  # the keys of a rank alone may differ: count rows
    keys = {int(order[row - program.rows_of(rank).start]): row for row in rows}
    found = dict.fromkeys(rows, "")
    for chunk, key in zip(recording.chunks, chunk_keys, strict=True):
        for lane in np.flatnonzero(np.isin(key, list(keys))).tolist():
            variables = chunk.scope.context(lane)
            text = ", ".join(f"{name} = {value}" for name, value in variables)
            found[keys[int(key[lane])]] = text
    return found
