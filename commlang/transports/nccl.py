"""`nccl`: one queue per communicator and rank, served in the order in which the host issues.

Each communicator runs its operations on a stream, one after the other, asynchronous ones too; a
batch is one operation, within which everything progresses; tags part nothing. `wait` holds up the
stream on which later operations are ordered, not the host. Hosts are held up only where a pair of
ranks makes its communicator at first use (`first_use`). A program hangs under this model if and
only if `issue_order` has a cycle. Two stricter models tell hazards apart: `one_queue` runs all
communicators of a device one after the other, as a device short of resources does, and in
`whole_batches` a batch moves nothing before all peers have posted their halves, as NCCL does while
it sets up connections.
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commlang.program.constraints import calls, meetings, tie
from commlang.transports.communicators import communicators, meet_untagged, paired
from commlang.transports.events import Graph
from commlang.transports.first_use import block_hosts, first_uses
from commlang.transports.queues import serve

if TYPE_CHECKING:
    from commlang.program.columns import Array
    from commlang.program.constraints import Part
    from commlang.program.matching import Messages
    from commlang.transports.events import Events
    from commlang.transports.issue import Issue
    from commlang.transports.queues import Queued
    from commlang.transports.target import NcclInit


class Nccl:
    """A program as NCCL runs it, with communicators made at first use or at once."""

    def __init__(self, events: Events, issue: Issue, init: NcclInit) -> None:
        self.events = events
        self.program = events.program
        self.issue = issue
        self.init = init

    @cached_property
    def messages(self) -> Messages:
        """Who meets whom: whatever the tags, and per communicator."""
        return meet_untagged(self.program, self.issue, self.init, self.events.messages)

    @cached_property
    def communicator(self) -> Array:
        """The communicator of each row of `issue.row`."""
        return communicators(self.program, self.issue, self.init)

    @cached_property
    def first_uses(self) -> Array:
        """Places in `issue.row` at which a rank first uses a communicator of two."""
        pair = paired(self.program, self.issue, self.init)
        return first_uses(self.program, self.issue, self.communicator, pair)

    def together(self, row: int, other: int) -> bool:
        """Whether two rows are of one batch."""
        issue = self.issue
        if not (issue.batched[row] and issue.batched[other]):
            return False
        same = issue.points.start[row] == issue.points.start[other]
        return bool(same and self.program.group[row] == self.program.group[other])

    @property
    def many_queues(self) -> bool:
        """Whether some operations run on another communicator than others."""
        used = self.communicator
        return bool(len(used)) and bool((used != used[0]).any())

    def issue_order(self, *, rooted_meet: bool = True) -> Graph:
        """What NCCL promises: it hangs if and only if this has a cycle."""
        queued = self._serve(self.communicator)
        uses = self.first_uses
        if not len(uses):
            return self._tied(queued, [], rooted_meet)
        hosts = range(queued.points.count, queued.points.count + 2 * len(uses))
        blocked, parts = block_hosts(self.program, self.issue, queued, uses, self.communicator)
        return self._tied(blocked, parts, rooted_meet, hosts=hosts)

    def one_queue(self) -> Graph:
        """As if a device ran the operations of all communicators one after the other."""
        return self._tied(self._serve(np.zeros_like(self.communicator)), [])

    def whole_batches(self) -> Graph:
        """As if a batch, and what it meets, moved only once all of it had been posted."""
        queued = self._serve(self.communicator)
        points = queued.points
        operation = np.full(len(self.program), -1, dtype=np.int64)
        operation[self.issue.row] = self.issue.operation
        one = operation[self.messages.send]
        label, wide = _components(len(queued.first), one, operation[self.messages.recv])
        member = np.flatnonzero(wide[label])
        taken = len(self.events.collectives.start) - 1  # hubs of collectives
        hub = points.count + taken + label[member]
        row = queued.first[member]
        none = np.full(len(row), -1, dtype=np.int64)
        parts = [(queued.start[member], hub, row, none), (hub, queued.end[member], none, row)]
        return self._tied(queued, parts, hubs=len(wide))

    def ties(self, row: int, other: int) -> list[int]:
        """Messages that tie two batches together: a way from one row to the other, end by end.

        Rows 2i and 2i + 1 are the ends of a message, rows 2i + 1 and 2i + 2 of one batch.
        """
        came: dict[int, tuple[int, ...]] = {}
        todo: deque[tuple[int, tuple[int, ...]]] = deque((mate, ()) for mate in self._mates(row))
        while todo:
            here, way = todo.popleft()
            there = int(self.messages.partner[here])
            if there < 0 or here in came:
                continue
            came[here] = way = (*way, here, there)
            mates = self._mates(there)
            if other in mates:
                return list(way)
            todo += [(mate, way) for mate in mates]
        return []

    def _mates(self, row: int) -> list[int]:
        """The messages of a row's batch, or the row alone."""
        if not self.issue.batched[row]:
            return [row]
        program, start = self.program, self.issue.points.start
        here = program.rows_of(int(program.rank[row]))
        rows = np.arange(here.start, here.stop)
        mine = self.issue.batched[rows] & (start[rows] == start[row])
        return rows[mine & (program.group[rows] == program.group[row])].tolist()

    def _serve(self, communicator: Array) -> Queued:
        rank = self.program.rank[self.issue.row].astype(np.int64)
        return serve(self.issue, communicator * self.program.world + rank)

    def _tied(
        self,
        queued: Queued,
        parts: list[Part],
        rooted_meet: bool = True,
        *,
        hubs: int = 0,
        hosts: range = range(0),
    ) -> Graph:
        points, collectives = queued.points, self.events.collectives
        known = [meetings(points, self.messages)]
        known += calls(self.program, collectives, points, rooted_meet=rooted_meet)
        edges = tie(points, len(collectives.start) - 1 + hubs, known + parts)
        return Graph(points, edges, hosts)


def _components(count: int, one: Array, other: Array) -> tuple[Array, Array]:
    """Operations that messages tie together: the number of each one's set, and which are wide.

    A set of two is an ordinary message.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    data = np.ones(len(one), dtype=np.int8)
    matrix = coo_matrix((data, (one, other)), shape=(count, count)).tocsr()
    sets, label = connected_components(matrix, directed=False)
    return label.astype(np.int64), np.bincount(label, minlength=sets) > 2
