"""How the executor issues a program on a stream backend: batches, their order, and its waits.

The messages of a `parallel:` are one batch per group, issued before the block's collectives; all
are joined where the block ends. A block with sequences is issued operation by operation, as
`commlang.schedule` puts its starts and joins in order. `wait` and the end of a blocking operation
hold up the stream and not the host; but what is issued after them starts after them, so the points
of a rank are a chain: one between each join and what is issued next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.constraints import rendezvous
from commlang.program.cycles import point_levels
from commlang.program.points import Points, find_points, top_unit
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.transports.events import Events


@record
class Issue:
    """Sends, recvs and collectives (`row`) in the order in which each rank issues them.

    `operation` numbers them, one number for all messages of a batch; `batched` tells which rows
    of the program are in one. `points` give each row the point at which it is issued and the one
    before which it has been joined.
    """

    points: Points
    row: Array
    operation: Array
    batched: Array


def issue(events: Events) -> Issue:
    """How a program is issued."""
    program = events.program
    scattered = _scattered(program)
    points = events.points
    place = np.arange(len(program))
    if scattered.any():
        points, place = _spread(events, scattered)
    batched = program.is_message & (program.nest >= 0) & ~scattered
    row = np.flatnonzero(program.kind <= Kind.BARRIER)
    row = row[_order(program, points, place, row, scattered[row])]
    return Issue(points, row, _operations(program, points, row, batched), batched)


def _scattered(program: Program) -> Array:
    """Rows of blocks with sequences."""
    scattered = np.zeros(len(program), dtype=np.bool_)
    if not len(program.nests.key):
        return scattered
    inside = np.flatnonzero(program.nest >= 0)
    unit = top_unit(program, inside) * program.world + program.rank[inside]
    listed = program.nests.look_up(program.nest[inside])[0]
    scattered[inside] = np.isin(unit, unit[listed])
    return scattered


def _order(program: Program, points: Points, place: Array, row: Array, scattered: Array) -> Array:
    """What sorts rows by issue: in a block the batches by group, then the collectives."""
    collective = program.is_collective[row]
    beside = points.start[row][1:] == points.start[row][:-1]
    beside &= (program.nest[row][1:] >= 0) & ~scattered[1:]
    apart = (collective[1:] != collective[:-1]) | (
        (program.group[row][1:] != program.group[row][:-1]) & ~collective[1:]
    )
    if not (beside & apart).any() and not scattered.any():
        return np.arange(len(row))
    kind = np.where(collective, len(program.groups.entries), program.group[row])
    kind = np.where(scattered | (program.nest[row] < 0), 0, kind)
    return np.lexsort((place[row], kind, points.start[row]))


def _operations(program: Program, points: Points, row: Array, batched: Array) -> Array:
    fresh = np.ones(len(row), dtype=np.bool_)
    start, group = points.start[row], program.group[row]
    together = batched[row][1:] & batched[row][:-1]
    fresh[1:] = ~(together & (start[1:] == start[:-1]) & (group[1:] == group[:-1]))
    return np.cumsum(fresh) - 1


@record
class _Moves:
    """What hosts do, rank by rank: `row` is started, or joined where `join` is set.

    A statement or block without sequences is joined as a whole: its first move counts as `closes`,
    one join more, after all of its starts. `first` is the first move of each one's statement.
    """

    row: Array
    join: Array
    closes: Array
    first: Array


def _spread(events: Events, scattered: Array) -> tuple[Points, Array]:
    """Points and places in issue order where blocks with sequences are issued move by move."""
    program = events.program
    rows = np.flatnonzero((program.kind <= Kind.BARRIER) | (program.kind == Kind.WAIT))
    moves = _moves(events, rows, scattered)
    apart = scattered[moves.row]
    ends_point = moves.join | moves.closes
    before = np.cumsum(ends_point) - ends_point
    rank = np.searchsorted(program.ranks, program.rank[moves.row])
    point = np.where(apart, before, before[moves.first]) + rank
    start, end, after = (np.full(len(program), -1, dtype=np.int64) for _ in range(3))
    place = np.zeros(len(program), dtype=np.int64)
    started, joined = np.flatnonzero(~moves.join), np.flatnonzero(moves.join)
    start[moves.row[started]] = point[started]
    place[moves.row[started]] = started
    end[moves.row[joined]] = point[joined] + 1
    waits = rows[(program.kind[rows] == Kind.WAIT) & scattered[rows]]
    start[waits] = end[waits] - 1
    plain = rows[~scattered[rows]]
    end[plain] = start[plain] + 1
    after[rows] = np.where(end[rows] >= 0, end[rows], start[rows])
    later = rows[program.site_async[program.site[rows]]]
    wait = program.wait[later]
    end[later] = np.where(wait < 0, -1, end[wait])
    points = np.bincount(rank[ends_point], minlength=len(program.ranks)) + 1
    last = np.cumsum(points) - 1
    none = np.zeros(0, dtype=np.int64)
    count = int(last[-1]) + 1
    return Points(count, count, start, end, last, (none, none), after), place


def _moves(events: Events, rows: Array, scattered: Array) -> _Moves:
    """All moves in order: by level in blocks with sequences, joins before starts."""
    program = events.program
    apart = scattered[rows]
    is_wait, later = program.kind[rows] == Kind.WAIT, program.site_async[program.site[rows]]
    starts, joins = np.flatnonzero(~(is_wait & apart)), np.flatnonzero(apart & ~later)
    index = np.concatenate([starts, joins])
    join = np.arange(len(index)) >= len(starts)
    begin, finish = _levels(events)
    level = np.where(join, finish[rows[index]], begin[rows[index]])
    level = np.where(apart[index], level, 0)
    unit = _numbers(program, rows)[index]
    order = np.lexsort((rows[index], ~join, level, unit))
    index, join, unit = index[order], join[order], unit[order]
    fresh = np.ones(len(index), dtype=np.bool_)
    fresh[1:] = unit[1:] != unit[:-1]
    first = np.flatnonzero(fresh)[np.cumsum(fresh) - 1]
    return _Moves(rows[index], join, fresh & ~apart[index], first)


def _levels(events: Events) -> tuple[Array, Array]:
    """Per row the levels at which `commlang.schedule` starts and joins it."""
    program = events.program
    points = find_points(program, local=True)
    edges = rendezvous(program, events.messages, events.collectives, points)
    level = point_levels(points, edges)
    return level[points.start], np.where(points.end >= 0, level[points.end], -1)


def _numbers(program: Program, rows: Array) -> Array:
    """Per row the number of its statement or outermost block, rank by rank."""
    unit, rank = top_unit(program, rows), program.rank[rows]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (unit[1:] != unit[:-1]) | (rank[1:] != rank[:-1])
    return np.cumsum(fresh) - 1
