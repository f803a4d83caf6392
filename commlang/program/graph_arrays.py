"""The dependency graph of a program as arrays: how its nodes are numbered, and its edges.

Row i starts at node 2i and ends at node 2i + 1. The program points follow, then one hub for each
instance of a collective. Points and hubs keep the number of edges linear: without them, each child
of a `parallel:` would need an edge to each child of the next, and each member of a collective one
to each other member. Everything is computed when first read.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from commlang.program.constraints import rendezvous
from commlang.program.matching import match_collectives, match_messages
from commlang.program.points import find_points
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.program.matching import Collectives
    from commlang.program.points import Points

EDGE_KINDS = ("order", "message", "collective", "async", "branch")
"""What an edge stands for; arrays of edges number these."""
ORDER, MESSAGE, COLLECTIVE, ASYNC, BRANCH = range(len(EDGE_KINDS))


@record
class Rows:
    """Compressed rows: node n's neighbours are `other[pointer[n] : pointer[n + 1]]`."""

    pointer: Array
    other: Array
    kind: Array


class GraphArrays:
    """Nodes and edges of a program's dependency graph, under rendezvous semantics."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.events = len(program)
        """Rows of the program: nodes below twice as many are starts and ends."""

    @cached_property
    def points(self) -> Points:
        """The program points, those of local events included."""
        return find_points(self.program, local=True)

    @cached_property
    def calls(self) -> Collectives:
        """The instances of collectives, one for each hub."""
        return match_collectives(self.program)

    @property
    def first_hub(self) -> int:
        """The first node that is a hub; the points lie between it and the events."""
        return 2 * self.events + self.points.count

    @cached_property
    def count(self) -> int:
        """How many nodes there are."""
        return self.first_hub + len(self.calls.start) - 1

    @cached_property
    def point_rank(self) -> Array:
        """The rank whose point it is, by point."""
        points, program = self.points, self.program
        rank = np.empty(points.count, dtype=np.int32)
        rank[: points.chained] = np.repeat(program.ranks, np.diff(points.last, prepend=-1))
        inside = points.start >= points.chained
        rank[points.start[inside]] = program.rank[inside]
        return rank

    @cached_property
    def successors(self) -> Rows:
        """The edges out of each node."""
        return _rows(self._matrix)

    @cached_property
    def predecessors(self) -> Rows:
        """The edges into each node."""
        return _rows(self._matrix.tocsc())

    @cached_property
    def _matrix(self) -> Any:
        from scipy.sparse import coo_matrix

        parts = [*self._own(), *self._between()]
        source, target = (
            np.concatenate([part[end].astype(np.int32) for part in parts]) for end in (0, 1)
        )
        kind = np.concatenate([part[2] for part in parts])
        shape = (self.count, self.count)
        return cast("Any", coo_matrix)((kind, (source, target)), shape=shape).tocsr()

    def _own(self) -> list[tuple[Array, Array, Array]]:
        """Edges within ranks: from point to start to end to point, or to the end of the wait.

        What is not asynchronous leads from each point to the next, which needs no further edge.
        """
        program, points, base = self.program, self.points, 2 * self.events
        later = program.site_async[program.site] if self.events else np.zeros(0, dtype=np.bool_)
        start = 2 * np.arange(self.events, dtype=np.int32)
        order = np.where(program.nest >= 0, BRANCH, ORDER).astype(np.int8)
        spans = np.where(later, ASYNC, ORDER).astype(np.int8)
        before = np.where(later, start, start + 1)  # what must have been before the next rows start
        joined = program.wait >= 0
        return [
            (base + points.start, start, order),
            (start, start + 1, spans),
            (before, base + points.after, order),
            (start[joined] + 1, 2 * program.wait[joined] + 1, spans[joined]),
        ]

    def _between(self) -> list[tuple[Array, Array, Array]]:
        """Edges between ranks: the transport's, from starts and to ends instead of points."""
        program, base = self.program, 2 * self.events
        messages = match_messages(program)
        edges = rendezvous(program, messages, self.calls, self.points)
        tied = (edges.cause >= 0) | (edges.effect >= 0)  # others order points, as rows do here
        cause, effect = edges.cause[tied], edges.effect[tied]
        source = np.where(cause >= 0, 2 * cause, base + edges.source[tied])
        target = np.where(effect >= 0, 2 * effect + 1, base + edges.target[tied])
        met = np.where(cause >= 0, cause, effect)
        kind = np.where(program.is_message[met], MESSAGE, COLLECTIVE).astype(np.int8)
        return [(source, target, kind)]


def _rows(matrix: Any) -> Rows:
    return Rows(matrix.indptr, matrix.indices, matrix.data)
