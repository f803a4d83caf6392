"""Communicators made at first use hold up the host: `init_process_group` without `device_id=`.

The host of a rank that first uses the communicator of a pair waits until its peer does so too, and
issues nothing meanwhile. It waits for streams only in a barrier, which returns when it is over.
The communicator of a group is taken to exist: it is made by the group's first collective, and who
is missing there is a finding of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.sorting import distinct, stable_order

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.program.constraints import Part
    from commlang.transports.issue import Issue
    from commlang.transports.queues import Queued


def first_uses(program: Program, issue: Issue, communicator: Array, pair: Array) -> Array:
    """Places in `issue.row` of the first use, on each rank, of each pair's communicator."""
    places = np.flatnonzero(pair)
    key = communicator[places] * program.world + program.rank[issue.row[places]]
    order = stable_order(key)
    fresh = np.ones(len(places), dtype=np.bool_)
    fresh[1:] = key[order][1:] != key[order][:-1]
    return np.sort(places[order[fresh]])


def block_hosts(
    program: Program, issue: Issue, queued: Queued, uses: Array, communicator: Array
) -> tuple[Queued, list[Part]]:
    """Nodes at which hosts arrive at and leave first uses, and the edges that tie pairs.

    What is issued at the same point after a first use starts after it, and so does what is issued
    at the next point.
    """
    points = queued.points
    count = len(uses)
    arrive = points.count + 2 * np.arange(count)
    leave = arrive + 1
    row = issue.row[uses]
    rank = program.rank[row]
    same = rank[1:] == rank[:-1]
    issued = issue.points.start[row]
    held = _held(issue, uses)
    first = queued.first[held]
    # Nodes before operations that start at their point, so that only they wait for the host.
    plain = queued.start[held] == issue.points.start[first]
    start = queued.start.copy()
    own = held[plain]
    start[own] = points.count + 2 * count + np.arange(len(own))
    cause = np.searchsorted(uses, _place(issue, held), side="right") - 1
    sources = [
        leave[:-1][same],
        issue.points.start[queued.first[own]],
        start[own],
        leave[cause],
        leave,
        arrive,
    ]
    targets = [arrive[1:][same], start[own], queued.end[own], start[held], issued + 1, leave]
    barrier, use = _barriers(program, issue, uses)
    sources.append(issue.points.end[barrier])
    targets.append(arrive[use])
    by_row = points.start.copy()
    by_row[issue.row] = start[issue.operation]
    nodes = replace(
        points,
        count=points.count + 2 * count + len(own),
        start=by_row,
        edges=(
            np.concatenate([points.edges[0], *sources]),
            np.concatenate([points.edges[1], *targets]),
        ),
    )
    one, other = _partners(uses, communicator)
    parts = [(arrive[one], leave[other], row[one], row[other])]
    return replace(queued, points=nodes, start=start), parts


def _place(issue: Issue, operation: Array) -> Array:
    """Where in `issue.row` operations begin."""
    return np.searchsorted(issue.operation, operation)


def _held(issue: Issue, uses: Array) -> Array:
    """Operations issued at the point of a first use, from it on."""
    start = issue.points.start[issue.row]
    latest = np.full(len(start), -1)
    latest[uses] = uses
    latest = np.maximum.accumulate(latest)
    after = (latest >= 0) & (start == start[np.maximum(latest, 0)])
    return distinct(issue.operation[after])


def _barriers(program: Program, issue: Issue, uses: Array) -> tuple[Array, Array]:
    """The last barrier before each first use on its rank, as rows, and which use that is."""
    kind = program.kind[issue.row]
    barriers = np.flatnonzero(kind == Kind.BARRIER)
    if not len(barriers):
        return barriers, barriers
    before = np.searchsorted(barriers, uses) - 1
    row = issue.row[barriers[np.maximum(before, 0)]]
    use = np.flatnonzero((before >= 0) & (program.rank[row] == program.rank[issue.row[uses]]))
    row = row[use]
    over = issue.points.end[row]
    known = (over >= 0) & (over <= issue.points.start[issue.row[uses[use]]])
    return row[known], use[known]


def _partners(uses: Array, communicator: Array) -> tuple[Array, Array]:
    """First uses of the same communicator by its two ranks, in both directions."""
    key = communicator[uses]
    order = np.argsort(key, kind="stable")
    met = np.flatnonzero(key[order][1:] == key[order][:-1])
    one, other = order[met], order[met + 1]
    return np.concatenate([one, other]), np.concatenate([other, one])
