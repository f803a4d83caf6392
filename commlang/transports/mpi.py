"""`mpi`: sends may or may not buffer, and one lock per process guards every call of MPI.

A standard send of MPI ends once the message is delivered or buffered, as the library likes: see
`buffers`. torch runs collectives on a worker thread, in issue order, which holds the lock while one
is under way; sends, recvs and the waits for them hold it in the caller's thread. So an asynchronous
collective may be over before anything that is issued after it, or not begin before its rank waits
for it and so leaves the lock to the worker: on each rank the threads decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commlang.program.sorting import stable_order
from commlang.transports import rendezvous

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.program.columns import Array
    from commlang.transports.events import Events, Graph


_WORK = 3_000_000
"""How many events the search for an order that hangs may look at in all."""


def deferred(events: Events) -> Array:
    """Asynchronous collectives, as rows."""
    program = events.program
    if not len(program):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(program.is_collective & program.site_async[program.site])


def orders(events: Events) -> Iterator[Array]:
    """For each order of the threads that is tried, the ranks on which collectives go first.

    These are all ranks, none, all but one and one alone; the last two only while that is no more
    work than `_WORK` events. Other mixtures are possible, so what ends in all of these may hang.
    """
    ranks = np.arange(events.program.world)
    yield ranks
    yield ranks[:0]
    if 2 * len(ranks) * len(events.program) <= _WORK:
        for rank in ranks.tolist():
            yield ranks[ranks != rank]
            if len(ranks) > 2:  # of two, one is all but the other
                yield ranks[ranks == rank]


def graph(events: Events, first: Array) -> Graph:
    """The graph in which asynchronous collectives take the lock at once on some ranks.

    On the others they begin only where the rank waits for them.
    """
    points, rows = events.points, deferred(events)
    at_once = np.isin(events.program.rank[rows], first)
    start, end = points.start.copy(), points.end.copy()
    end[rows[at_once]] = points.after[rows[at_once]]
    late = rows[~at_once]
    start[late] = _rests(events, late)
    return rendezvous.graph(replace(events, points=replace(points, start=start, end=end)))


def _rests(events: Events, rows: Array) -> Array:
    """Per row the point at which its rank waits for it, or for a later one of its worker's queue.

    Each group has a worker, which runs the group's collectives in order.
    """
    program, points = events.program, events.points
    calls = np.flatnonzero(program.is_collective)
    group, rank = program.group[calls].astype(np.int64), program.rank[calls]
    order = stable_order(group * program.world + rank)
    calls, queue = calls[order], (group * program.world + rank)[order]
    later, wait = program.site_async[program.site[calls]], program.wait[calls].astype(np.int64)
    never = len(program)
    joined = np.where(later, np.where(wait < 0, never, wait), calls)
    number = np.cumsum(np.concatenate([[False], queue[1:] != queue[:-1]]))
    key = joined + number * (never + 1)  # so that no queue sees those after it
    first = np.minimum.accumulate(key[::-1])[::-1] - number * (never + 1)
    rest = np.full(len(program), never)
    rest[calls] = first
    there = rest[rows]
    return np.where(there < never, points.start[np.minimum(there, never - 1)], points.start[rows])
