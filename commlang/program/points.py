"""Program points: the moments between the operations of a rank, and what starts and ends there.

Deadlock-freedom needs no node per event. Between two consecutive blocking operations of a rank
lies one point; an operation starts at the point before it and ends at the point after it; the
children of a `parallel:` share both; an asynchronous operation ends where its wait ends. Points
of one rank are numbered in order, so that "the next point comes later" needs no stored edge.
Local events wait for nobody, so only who wants every event in its place gives them points too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program


@record
class Points:
    """`start` and `end` are points by row, -1 for local events and for ends that never come.

    Points below `chained` are numbered rank by rank: each but a rank's last (`last`) is followed
    by the next number. The others stand inside sequences; `edges` (from, to) order them.
    `after` is the point before which a row has started at the latest: its end, unless the row is
    asynchronous, in which case the rows that follow it start there.
    """

    count: int
    chained: int
    start: Array
    end: Array
    last: Array
    edges: tuple[Array, Array]
    after: Array


def find_points(program: Program, *, local: bool = False) -> Points:
    """The points of a program; with `local`, also those between its local events."""
    if local:
        rows = np.arange(len(program))
    else:
        rows = np.flatnonzero((program.kind <= Kind.BARRIER) | (program.kind == Kind.WAIT))
    rank = program.rank[rows]
    unit = top_unit(program, rows)
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (unit[1:] != unit[:-1]) | (rank[1:] != rank[:-1])
    index = np.searchsorted(program.ranks, rank) if program.world != len(program.ranks) else rank
    place = np.cumsum(fresh) - 1 + index  # each rank before this one has one more point than units
    start = np.full(len(program), -1, dtype=np.int64)
    start[rows] = place
    end = np.full(len(program), -1, dtype=np.int64)
    end[rows] = place + 1
    units = np.bincount(index[fresh], minlength=len(program.ranks))
    last = np.cumsum(units + 1) - 1
    chained = int(last[-1]) + 1 if len(last) else 0
    count, edges = _sequences(program, rows, start, end, chained)
    joined = program.site_async[program.site[rows]] if len(rows) else np.zeros(0, dtype=np.bool_)
    later = rows[joined]
    wait = program.wait[later]
    after = end.copy() if len(later) else end
    end[later] = np.where(wait < 0, -1, end[wait])
    return Points(count, chained, start, end, last, edges, after)


def top_unit(program: Program, rows: Array) -> Array:
    """The key of the outermost construct around each row, or its own."""
    nest = program.nest[rows]
    current = nest
    while len(program.nests.key):
        listed, parent, _ = program.nests.look_up(current)
        if not listed.any():
            break
        current = np.where(listed, parent, current)
    return np.where(nest < 0, program.key[rows], current)


def _sequences(
    program: Program, rows: Array, start: Array, end: Array, count: int
) -> tuple[int, tuple[Array, Array]]:
    """Give rows inside sequences points of their own, level by level from the outside."""
    none = np.zeros(0, dtype=np.int64)
    nests = program.nests
    if not len(nests.key):
        return count, (none, none)
    inner = rows[nests.look_up(program.nest[rows])[0]]
    path = _path(program, inner)
    sources: list[Array] = []
    targets: list[Array] = []
    for level in range(1, path.shape[1] - 1, 2):  # parallel, sequence, parallel, sequence, …
        here = path[:, level] >= 0
        chosen, chain, unit = inner[here], path[here, level], path[here, level + 1]
        count = _one_level(program, chosen, chain, unit, start, end, count, sources, targets)
    return count, (np.concatenate([none, *sources]), np.concatenate([none, *targets]))


def _path(program: Program, rows: Array) -> Array:
    """Per row, the keys of the constructs around it from the outside, then its own key, then -1."""
    levels = [program.key[rows], program.nest[rows]]
    while True:
        listed, parent, _ = program.nests.look_up(levels[-1])
        if not listed.any():
            break
        levels.append(parent)
    table = np.stack(levels[::-1], axis=1)
    depth = (table >= 0).sum(axis=1)
    path = np.full((len(rows), table.shape[1] + 1), -1, dtype=np.int64)
    for size in np.unique(depth).tolist():
        same = depth == size
        path[same, :size] = table[same, table.shape[1] - size :]
    return path


def _one_level(
    program: Program,
    rows: Array,
    chain: Array,
    unit: Array,
    start: Array,
    end: Array,
    count: int,
    sources: list[Array],
    targets: list[Array],
) -> int:
    """Split the span of each sequence (on each rank) into its units, with new points between."""
    if not len(rows):
        return count
    rank = program.rank[rows]
    new_chain = np.ones(len(rows), dtype=np.bool_)
    new_chain[1:] = (chain[1:] != chain[:-1]) | (rank[1:] != rank[:-1])
    new_unit = new_chain.copy()
    new_unit[1:] |= unit[1:] != unit[:-1]
    number = np.cumsum(new_chain) - 1
    units = np.bincount(number[new_unit])
    place = np.cumsum(new_unit) - 1
    within = place - (np.cumsum(units) - units)[number]
    base = count + np.cumsum(units - 1) - (units - 1)
    first, last = within == 0, within == units[number] - 1
    outer_start, outer_end = start[rows], end[rows]
    start[rows] = np.where(first, outer_start, base[number] + within - 1)
    end[rows] = np.where(last, outer_end, base[number] + within)
    sources.append(start[rows[new_unit]])
    targets.append(end[rows[new_unit]])
    return count + int((units - 1).sum())
