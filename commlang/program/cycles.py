"""Is there a cycle among points and hubs, and which is a small one?

The decision runs on arrays. Peeling the graph level by level needs numpy alone and suits broad
graphs; a narrow one of many levels goes to scipy's strong components, loaded only then.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from commlang.program.sorting import distinct
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array
    from commlang.program.constraints import Edges
    from commlang.program.points import Points

_MAX_LEVELS = 20_000
_SEARCH = 500_000
"""How many edges the search for a shorter cycle may look at."""


@record
class _Graph:
    """Compressed rows of the stored edges, beside the implied edge to the next point."""

    count: int
    pointer: Array
    target: Array
    follows: Array
    """Whether a point's next number is its successor."""


def find_cycle(points: Points, edges: Edges) -> list[int] | None:
    """The stored edges of a short cycle, in order, or None if there is no cycle.

    The cycle is one that a hanging run shows: every wait in it has begun.
    """
    graph = _graph(points, edges)
    stuck = _stuck(graph, edges)
    if not stuck.any():
        return None
    begun = _begun(graph, stuck, edges, points.count)
    pointer = np.searchsorted(edges.source[begun], np.arange(edges.count + 1))
    follows = graph.follows & stuck
    follows[:-1] &= stuck[1:]
    narrow = _Graph(edges.count, pointer, edges.target[begun], follows)
    return begun[_short_cycle(narrow, stuck)].tolist()


def has_cycle(points: Points, edges: Edges) -> bool:
    """Whether there is a cycle, without looking for a short one."""
    return bool(_stuck(_graph(points, edges), edges).any())


def point_levels(points: Points, edges: Edges) -> Array:
    """Per point and hub, the length of the longest path to it; there must be no cycle."""
    levels = np.zeros(edges.count, dtype=np.int64)
    _peel(_graph(points, edges), levels)
    return levels


def reached_levels(points: Points, edges: Edges, held: Array, most: int) -> tuple[Array, Array]:
    """The levels of what comes before level `most`, and which points and hubs that are.

    There may be cycles; what is in one or behind one is not reached, nor are the nodes `held` and
    what is behind those.
    """
    levels = np.full(edges.count, -1, dtype=np.int64)
    _peel(_graph(points, edges), levels, held, most)
    return np.maximum(levels, 0), levels >= 0


def _stuck(graph: _Graph, edges: Edges) -> Array:
    stuck = _peel(graph)
    return _never_reached(graph, edges) if stuck is None else stuck


def _graph(points: Points, edges: Edges) -> _Graph:
    follows = np.zeros(edges.count, dtype=np.bool_)
    follows[: points.chained] = True
    follows[points.last] = False
    pointer = np.searchsorted(edges.source, np.arange(edges.count + 1))
    return _Graph(edges.count, pointer, edges.target, follows)


def _peel(
    graph: _Graph,
    levels: Array | None = None,
    held: Array | None = None,
    most: int | None = None,
) -> Array | None:
    """Remove what has no predecessor until nothing changes; None if that takes too many levels.

    With `levels`, write down when each node went, for `most` levels or however many there are.
    Nodes that are `held` stay, whatever goes.
    """
    degree = np.bincount(graph.target, minlength=graph.count).astype(np.int32)
    degree[1:] += graph.follows[:-1]
    if held is not None:
        degree[held] += 1
    front = np.flatnonzero(degree == 0)
    for level in count():
        if not len(front):
            return degree > 0
        if level == most:
            return None
        if levels is not None:
            levels[front] = level
        elif level == _MAX_LEVELS:
            return None
        reached = _successors(graph, front)
        degree[front] = -1
        np.subtract.at(degree, reached, 1)
        front = distinct(reached[degree[reached] == 0])
    raise AssertionError("levels never end")


def _successors(graph: _Graph, nodes: Array) -> Array:
    low, high = graph.pointer[nodes], graph.pointer[nodes + 1]
    sizes = high - low
    ends = np.cumsum(sizes)
    slots = np.arange(int(ends[-1])) + np.repeat(low - (ends - sizes), sizes)
    return np.concatenate([graph.target[slots], nodes[graph.follows[nodes]] + 1])


def _successors_of(graph: _Graph, node: int) -> list[int]:
    found: list[int] = graph.target[graph.pointer[node] : graph.pointer[node + 1]].tolist()
    return [*found, node + 1] if graph.follows[node] else found


def _never_reached(graph: _Graph, edges: Edges) -> Array:
    """Nodes of strong components with more than one node, and all that comes after them."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    chain = np.flatnonzero(graph.follows)
    source = np.concatenate([edges.source, chain]).astype(np.int32)
    target = np.concatenate([edges.target, chain + 1]).astype(np.int32)
    size = graph.count + 1  # one node more, from which the search starts
    matrix = coo_matrix((np.ones(len(source), np.int8), (source, target)), (size, size)).tocsr()
    count, label = connected_components(matrix, directed=True, connection="strong")
    many = np.flatnonzero(np.bincount(label, minlength=count)[label] > 1)
    source = np.concatenate([source, np.full(len(many), graph.count, dtype=np.int32)])
    target = np.concatenate([target, many.astype(np.int32)])
    matrix = coo_matrix((np.ones(len(source), np.int8), (source, target)), (size, size)).tocsr()
    reached: Array = breadth_first_order(matrix, graph.count, return_predecessors=False)
    stuck = np.zeros(size, dtype=np.bool_)
    stuck[reached] = True
    return stuck[:-1]


def _begun(graph: _Graph, stuck: Array, edges: Edges, points: int) -> Array:
    """Edges among stuck nodes, but of waits for other ranks only those that have begun.

    Those end at a point before which their own rank is not stuck.
    """
    inside = stuck[edges.source] & stuck[edges.target]
    local = (edges.cause < 0) & (edges.effect < 0)
    behind = np.zeros(graph.count, dtype=np.bool_)
    behind[1:] = graph.follows[:-1] & stuck[:-1]
    behind[edges.target[inside & local]] = True
    hub = edges.target >= points
    return np.flatnonzero(inside & (local | hub | ~behind[edges.target]))


def _short_cycle(graph: _Graph, stuck: Array) -> list[int]:
    """Breadth-first searches from the nodes of one cycle, for the shortest that passes there."""
    nodes = _any_cycle(stuck, graph)
    budget = _SEARCH
    best = nodes
    for start in nodes:
        found, looked = _through(graph, stuck, start, len(best))
        if found and len(found) < len(best):
            best = found
        budget -= looked
        if budget < 0 or len(best) <= 2:
            break
    return _edges_of(graph, best)


def _any_cycle(stuck: Array, graph: _Graph) -> list[int]:
    """Walk from predecessor to predecessor among the stuck nodes until one comes again."""
    before = np.full(graph.count, -1, dtype=np.int64)
    before[graph.target] = np.repeat(np.arange(graph.count), np.diff(graph.pointer))
    chain = np.flatnonzero(graph.follows)
    before[chain + 1] = chain
    node = int(np.flatnonzero(stuck & (before >= 0))[0])
    seen: dict[int, int] = {}
    walk: list[int] = []
    while node not in seen:
        seen[node] = len(walk)
        walk.append(node)
        node = int(before[node])
    return walk[seen[node] :][::-1]


def _through(graph: _Graph, stuck: Array, start: int, limit: int) -> tuple[list[int] | None, int]:
    """The shortest cycle through a node that is shorter than `limit`, and the edges looked at."""
    parent = {start: start}
    depth = {start: 0}
    queue = deque([start])
    looked = 0
    while queue:
        node = queue.popleft()
        if depth[node] + 1 >= limit:
            return None, looked
        for successor in _successors_of(graph, node):
            looked += 1
            if successor == start:
                path = [node]
                while path[-1] != start:
                    path.append(parent[path[-1]])
                return path[::-1], looked
            if successor not in parent and stuck[successor]:
                parent[successor] = node
                depth[successor] = depth[node] + 1
                queue.append(successor)
        if looked > _SEARCH:
            break
    return None, looked


def _edges_of(graph: _Graph, nodes: list[int]) -> list[int]:
    """The stored edges along a cycle of nodes (the implied ones are left out)."""
    result: list[int] = []
    for node, successor in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
        low, high = int(graph.pointer[node]), int(graph.pointer[node + 1])
        found = np.flatnonzero(graph.target[low:high] == successor)
        if len(found):
            result.append(low + int(found[0]))
    return result
