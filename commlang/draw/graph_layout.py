"""Places for the nodes of a step graph: layers from top to bottom, by what follows what.

The method of Sugiyama, Tagawa and Toda (https://doi.org/10.1109/TSMC.1981.4308636): layers by the
longest way from the start, stand-ins where an edge passes a layer, few crossings by the mean place
of neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from commlang.records import entity

if TYPE_CHECKING:
    from commlang.draw.graph import Edge, Graph

WIDTH, HEIGHT = 268.0, 40.0
"""Of a node."""
SLIM = 12.0
"""Width of a join, and of an edge that passes a layer."""
BESIDE, BELOW = 64.0, 28.0
"""Room between nodes of a layer, and between layers."""
SWEEPS = 6


@entity
class Layout:
    """The centres of nodes by number, and of the points that long edges pass, by edge."""

    at: dict[int, tuple[float, float]]
    passed: dict[tuple[int, int], list[tuple[float, float]]]
    layer: dict[int, int]
    width: float
    height: float


def lay_out(graph: Graph) -> Layout:
    """Give every node its place; the upper left corner is 0, 0."""
    layer = _layers(graph)
    down = [e for e in graph.edges if layer[e.target] > layer[e.source]]
    items, links, chains = _stand_ins(graph, layer, down)
    rows = _ordered(items, links)
    x = _abscissas(rows, links)
    left = min((x[i] - _wide(i) / 2 for row in rows for i in row), default=0.0)
    heights = [row_at * (HEIGHT + BELOW) + HEIGHT / 2 for row_at in range(len(rows))]
    place = {i: (x[i] - left, heights[at]) for at, row in enumerate(rows) for i in row}
    width = max((place[i][0] + _wide(i) / 2 for row in rows for i in row), default=0.0)
    passed = {pair: [place[i] for i in chain] for pair, chain in chains.items()}
    real = {number: place[number] for number in graph.nodes}
    return Layout(real, passed, layer, width, len(rows) * (HEIGHT + BELOW) - BELOW)


def _layers(graph: Graph) -> dict[int, int]:
    """The longest way to each node by order alone, so that what runs side by side stands so."""
    into: dict[int, list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        if edge.orders:
            into[edge.target].append(edge)
    layer: dict[int, int] = {}
    for number in graph.nodes:  # in the order of the program
        layer[number] = max((layer[edge.source] + 1 for edge in into[number]), default=0)
    return layer


_Rows = list[list[int]]
_Links = dict[int, list[int]]
_FIRST = -(1 << 60)
"""Stand-ins are numbered from here on upwards; joins and steps have other numbers."""


def _wide(item: int) -> float:
    return WIDTH if item >= 0 else SLIM


def _stand_ins(
    graph: Graph, layer: dict[int, int], down: list[Edge]
) -> tuple[_Rows, _Links, dict[tuple[int, int], list[int]]]:
    """The items of each layer, what ties those of neighbouring layers, and each edge's chain."""
    rows: _Rows = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for number, at in layer.items():
        rows[at].append(number)
    links: _Links = defaultdict(list)
    chains: dict[tuple[int, int], list[int]] = {}
    fresh = _FIRST
    for edge in down:
        chain: list[int] = []
        for at in range(layer[edge.source] + 1, layer[edge.target]):
            rows[at].append(fresh)
            chain.append(fresh)
            fresh += 1
        ends = [edge.source, *chain, edge.target]
        for one, other in pairwise(ends):
            links[other].append(one)
            links[one].append(other)
        chains[edge.source, edge.target] = chain
    return rows, links, chains


def _ordered(rows: _Rows, links: _Links) -> _Rows:
    """Sort each layer by the mean place of its neighbours above, then below, several times."""
    for sweep in range(SWEEPS):
        chosen = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        for at in chosen:
            other = rows[at - 1] if sweep % 2 == 0 else rows[at + 1]
            place = {item: n for n, item in enumerate(other)}
            own = {item: n * len(other) / len(rows[at]) for n, item in enumerate(rows[at])}
            rows[at].sort(key=lambda item, p=place, o=own: _mean(links[item], p, o[item]))
    return rows


def _mean(neighbours: list[int], place: dict[int, int], otherwise: float) -> float:
    found = [place[n] for n in neighbours if n in place]
    return sum(found) / len(found) if found else otherwise


def _abscissas(rows: _Rows, links: _Links) -> dict[int, float]:
    """Each item under the middle of those above it, as far as its neighbours leave room."""
    x: dict[int, float] = {}
    for row in rows:
        wanted = [_middle(links[item], x) for item in row]
        at: list[float] = []
        for number, item in enumerate(row):
            room = wanted[number]
            if at:
                before = row[number - 1]
                gap = BESIDE if item >= 0 and before >= 0 else SLIM
                room = max(room, at[-1] + (_wide(before) + _wide(item)) / 2 + gap)
            at.append(room)
        shift = sum(w - a for w, a in zip(wanted, at, strict=True)) / len(row) if row else 0.0
        x |= {item: place + shift for item, place in zip(row, at, strict=True)}
    return x


def _middle(neighbours: list[int], x: dict[int, float]) -> float:
    found = [x[n] for n in neighbours if n in x]
    return sum(found) / len(found) if found else 0.0
