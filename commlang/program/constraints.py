"""What ties ranks together: the edges that a transport adds between program points.

An edge says that one row cannot end before another has started. A transport model is a choice
of edges; `rendezvous` is the strictest that every real transport honours for posted operations:
a message ends on both sides only after both have started, and a collective ends on a member only
after all members have started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.sorting import is_sorted

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.program.matching import Collectives, Messages
    from commlang.program.points import Points


@dataclass(frozen=True, slots=True)
class Edges:
    """`source[i]` comes before `target[i]`; both are points or, from `count` on, hubs.

    `cause[i]` is the row whose start the edge waits for and `effect[i]` the row that waits, -1
    where the edge leads to or from a hub (the meeting of a collective's members) or keeps order
    inside a sequence.
    """

    count: int
    source: Array
    target: Array
    cause: Array
    effect: Array


def rendezvous(
    program: Program,
    messages: Messages,
    collectives: Collectives,
    points: Points,
    *,
    rooted_meet: bool = True,
) -> Edges:
    """The edges under rendezvous semantics.

    With `rooted_meet` false, a rooted collective promises only the data dependence between root
    and leaf: what is still a cycle then hangs on every implementation.
    """
    paired = np.flatnonzero(messages.partner >= 0)
    parts = [_between(points, paired, messages.partner[paired])]
    if len(collectives.start) > 1:
        parts += _collective(program, collectives, points, rooted_meet)
    source, target = points.edges
    if len(source):
        none = np.full(len(source), -1, dtype=np.int64)
        parts.append((source, target, none, none))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    keep = (columns[0] >= 0) & (columns[1] >= 0)
    if not keep.all():
        columns = [column[keep] for column in columns]
    if not is_sorted(columns[0]):
        order = np.argsort(columns[0], kind="stable")
        columns = [column[order] for column in columns]
    return Edges(points.count + len(collectives.start) - 1, *columns)


def _between(points: Points, cause: Array, effect: Array) -> tuple[Array, Array, Array, Array]:
    return points.start[cause], points.end[effect], cause, effect


def _collective(
    program: Program, collectives: Collectives, points: Points, rooted_meet: bool
) -> list[tuple[Array, Array, Array, Array]]:
    """Members meet at a hub; members of a rooted collective only at its root, if so asked."""
    instance = np.repeat(np.arange(len(collectives.start) - 1), np.diff(collectives.start))
    row = collectives.row
    whole = collectives.whole[instance]
    kind = program.kind[row]
    rooted = (kind >= Kind.REDUCE) & (kind <= Kind.GATHER)
    meet = whole & (rooted_meet | ~rooted)
    hub = points.count + instance[meet]
    members = row[meet]
    none = np.full(len(members), -1, dtype=np.int64)
    parts = [
        (points.start[members], hub, members, none),
        (hub, points.end[members], none, members),
    ]
    if rooted_meet:
        return parts
    at_root = whole & rooted & (program.rank[row] == program.peer[row])
    root_of = np.full(len(collectives.start) - 1, -1, dtype=np.int64)
    root_of[instance[at_root]] = row[at_root]
    leaf = whole & rooted & ~at_root & (root_of[instance] >= 0)
    leaves, roots = row[leaf], root_of[instance[leaf]]
    inward = np.isin(program.kind[leaves], (Kind.REDUCE, Kind.GATHER))
    cause, effect = np.where(inward, leaves, roots), np.where(inward, roots, leaves)
    parts.append(_between(points, cause, effect))
    return parts
