"""First-in-first-out queues: an operation starts once the one before it on its queue has ended.

Where an operation joins before the next of its queue is issued, program order says so already and
the operation starts and ends at points. Only the others get nodes of their own, between the point
at which they are issued and the one before which they are joined.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commlang.program.sorting import stable_order
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array
    from commlang.program.points import Points
    from commlang.transports.issue import Issue


@record
class Queued:
    """Points whose `start` and `end` are when each row runs; `first` is each operation's first row.

    `start` and `end` here are those nodes by operation.
    """

    points: Points
    first: Array
    start: Array
    end: Array


def serve(issue: Issue, queue: Array) -> Queued:
    """Run each operation after the one before it on its queue.

    `queue` numbers the queue of each row of `issue.row`; rows of one operation share it, ranks do
    not.
    """
    points = issue.points
    fresh = np.ones(len(issue.row), dtype=np.bool_)
    fresh[1:] = issue.operation[1:] != issue.operation[:-1]
    first = issue.row[fresh]
    issued, joined = points.start[first], points.end[first]
    one, other = _successors(queue[fresh], issued, joined)
    own_start, own_end = (np.zeros(len(first), dtype=np.bool_) for _ in range(2))
    own_start[other] = True
    own_end[one] = True
    count = points.count
    start, end = issued.copy(), joined.copy()
    start[own_start] = count + np.arange(int(own_start.sum()))
    count += int(own_start.sum())
    end[own_end] = count + np.arange(int(own_end.sum()))
    count += int(own_end.sum())
    own = own_start | own_end
    sources = [points.edges[0], issued[own_start], start[own], end[own_end], end[one]]
    targets = [points.edges[1], start[own_start], end[own], joined[own_end], start[other]]
    rows = [np.full(len(points.start), -1, dtype=np.int64) for _ in range(2)]
    for column, node in zip(rows, (start, end), strict=True):
        column[issue.row] = node[issue.operation]
    nodes = replace(
        points,
        count=count,
        start=rows[0],
        end=rows[1],
        edges=(np.concatenate(sources), np.concatenate(targets)),
    )
    return Queued(nodes, first, start, end)


def _successors(queue: Array, issued: Array, joined: Array) -> tuple[Array, Array]:
    """Operations and those after them on their queues, unless joined before those are issued."""
    order = stable_order(queue)
    one, other = order[:-1], order[1:]
    same = queue[one] == queue[other]
    implied = (joined[one] >= 0) & (joined[one] <= issued[other])
    bound = same & ~implied
    return one[bound], other[bound]
