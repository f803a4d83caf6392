"""What ties ranks together: the edges between program points.

An edge says that one row cannot end before another has started. `rendezvous` ties what every real
transport ties: a message ends on both sides only after both have started, and a collective ends on
a member only after all members have started. `commlang.transports` builds its models on these: each
says when operations start and end (the points), or adds edges of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from commlang.operations import Kind
from commlang.program.sorting import is_sorted, stable_order
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.program.matching import Collectives, Messages
    from commlang.program.points import Points


@record
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


Part: TypeAlias = "tuple[Array, Array, Array, Array]"
"""Some edges, as the columns of `Edges`; those that lead from or to -1 are dropped."""


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
    parts = [meetings(points, messages)]
    parts += calls(program, collectives, points, rooted_meet=rooted_meet)
    return tie(points, len(collectives.start) - 1, parts)


def meetings(points: Points, messages: Messages) -> Part:
    """Each end of a message ends after the other has started."""
    paired = np.flatnonzero(messages.partner >= 0)
    return between(points, paired, messages.partner[paired])


def calls(
    program: Program, collectives: Collectives, points: Points, *, rooted_meet: bool = True
) -> list[Part]:
    """Collectives, each with a hub; those are numbered from `points.count`."""
    if len(collectives.start) < 2:
        return []
    return _collective(program, collectives, points, rooted_meet)


def tie(points: Points, hubs: int, parts: list[Part]) -> Edges:
    """The edges of these parts and of the points, sorted by source."""
    source, target = points.edges
    columns = [
        np.concatenate(column) for column in zip(*parts, inside(source, target), strict=True)
    ]
    keep = (columns[0] >= 0) & (columns[1] >= 0)
    if not keep.all():
        columns = [column[keep] for column in columns]
    if not is_sorted(columns[0]):
        order = stable_order(columns[0])
        columns = [column[order] for column in columns]
    return Edges(points.count + hubs, *columns)


def inside(source: Array, target: Array) -> Part:
    """Edges that keep order on one rank."""
    none = np.full(len(source), -1, dtype=np.int64)
    return source, target, none, none


def between(points: Points, cause: Array, effect: Array) -> Part:
    """Edges from the start of each `cause` to the end of each `effect`, both rows."""
    return points.start[cause], points.end[effect], cause, effect


def _collective(
    program: Program, collectives: Collectives, points: Points, rooted_meet: bool
) -> list[Part]:
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
    parts.append(between(points, cause, effect))
    return parts
