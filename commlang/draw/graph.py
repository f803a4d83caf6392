"""The step graph as it is drawn: folded where it is large, with its longest path marked."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.draw.graph_path import Path, critical_path
from commlang.draw.matrix import statements_of
from commlang.draw.styles import family
from commlang.draw.words import bytes_text, place_of
from commlang.program.sorting import distinct
from commlang.program.steps import step_graph
from commlang.records import entity

if TYPE_CHECKING:
    import networkx as nx

    from commlang.draw.subject import Subject
    from commlang.program import Program
    from commlang.program.columns import Array

UNFOLDED = 36
"""Steps up to which each is drawn; of more, the iterations of a statement are one."""
MOST = 120
"""Most statements that are drawn."""
MOST_STEPS = 20_000
"""Most steps among which the longest path is looked for one by one."""
KINDS = ("message", "collective", "async", "order")
"""What ties steps, from the most telling to the least."""


@entity
class Node:
    """A step, or all iterations of a statement; `join` stands for no statement.

    `position` orders nodes as the program does. `times` counts iterations.
    """

    number: int
    position: float
    text: str = ""
    family: str = ""
    place: str = ""
    events: int = 0
    ranks: int = 0
    times: int = 1
    bytes: int = 0
    inside: dict[str, int] = field(default_factory=dict[str, int])
    critical: bool = False

    @property
    def join(self) -> bool:
        """Whether the node only ties others."""
        return not self.family

    def told(self) -> str:
        """How much there is of it: `×6 · 4 ranks · 24 MiB · 24 messages`."""
        parts = [f"×{self.times:,}"] if self.times > 1 else []
        parts.append(counted(self.ranks, "rank"))
        parts += [bytes_text(self.bytes)] if self.bytes else []
        if self.inside.get("message"):
            parts.append(counted(self.inside["message"], "message"))
        if self.inside.get("collective"):
            parts.append(counted(self.inside["collective"], "call"))
        return " · ".join(parts)


@entity
class Edge:
    """What ties two nodes: how often by kind. A `back` edge leads to an earlier place."""

    source: int
    target: int
    counts: dict[str, int]
    back: bool
    critical: bool = False

    @property
    def kind(self) -> str:
        """The most telling kind."""
        return next((kind for kind in KINDS if kind in self.counts), "order")

    @property
    def short(self) -> str:
        """`×24`, of what the line's style says; empty for mere order."""
        return f"×{self.counts[self.kind]:,}" if self.kind != "order" else ""

    @property
    def orders(self) -> bool:
        """Whether the one comes before the other on some rank, by order or by a wait."""
        return not self.back and ("order" in self.counts or "async" in self.counts)

    def told(self) -> str:
        """`24 messages, 4 waits`; empty for mere order."""
        words = {"message": "message", "collective": "call", "async": "wait"}
        told = (counted(n, words[kind]) for kind, n in self.counts.items() if kind in words)
        return ", ".join(told)


@entity
class Graph:
    """All nodes by number, in the order of the program, and what ties them."""

    nodes: dict[int, Node]
    edges: list[Edge]
    path: Path
    notes: list[str]


def make_graph(subject: Subject) -> Graph:
    """The step graph of a subject, folded to what a reader can take in."""
    program = subject.program
    keys = distinct(program.key)
    unit, notes = program.key, list[str]()
    if len(keys) > UNFOLDED:
        many = len(program.sites) > MOST
        unit = statements_of(program)[program.site] if many else program.site.astype(np.int64)
        notes.append(f"{len(keys):,} steps are drawn as the statements that they repeat.")
    steps = step_graph(program, unit)
    dropped = _limit(steps)
    if dropped:
        notes.append(f"{dropped:,} statements more, those of fewest bytes, are not drawn.")
    fine = step_graph(program) if len(keys) <= MOST_STEPS and unit is not program.key else steps
    fine_unit = unit if fine is steps else program.key
    path = critical_path(subject, fine, fine_unit, unit)
    nodes = _nodes(program, steps, unit, path)
    graph = Graph(nodes, _edges(steps, nodes, path), path, [path.told, *notes])
    _reduce(graph)
    return graph


def _limit(steps: nx.DiGraph[int]) -> int:
    """Drop the lightest statements if there are too many; returns how many."""
    real = [n for n, data in steps.nodes(data=True) if data["kind"] == "step"]
    if len(real) <= MOST:
        return 0
    lightest = sorted(real, key=lambda n: steps.nodes[n]["bytes"])[: len(real) - MOST]
    steps.remove_nodes_from([*lightest, *(n for n in steps if n < 0)])
    return len(lightest)


def _nodes(program: Program, steps: nx.DiGraph[int], unit: Array, path: Path) -> dict[int, Node]:
    """Nodes in the order in which the program first comes to them."""
    first, times, ranks = _occurrences(program, unit)
    found: list[Node] = []
    for number, data in steps.nodes(data=True):
        if data["kind"] == "join":
            found.append(Node(number, first[-1 - number][0] - 0.5))
            continue
        key, row = first[number]
        inside = {kind: data[kind] for kind in KINDS if kind in data}
        found.append(
            Node(
                number,
                key,
                data["text"],
                family(int(program.kind[row])),
                place_of(program, row),
                data["ranks"],
                ranks[number],
                times[number],
                data["bytes"],
                inside,
                number in path.nodes,
            )
        )
    return {node.number: node for node in sorted(found, key=lambda node: node.position)}


def _occurrences(
    program: Program, unit: Array
) -> tuple[dict[int, tuple[int, int]], dict[int, int], dict[int, int]]:
    """By unit its first key and a row of it, how many keys it has, and how many ranks run it."""
    order = np.lexsort((program.key, unit))
    units, start = np.unique(unit[order], return_index=True)
    at = order[start]
    first = dict(
        zip(units.tolist(), zip(program.key[at].tolist(), at.tolist(), strict=True), strict=True)
    )
    return first, _different(unit, program.key), _different(unit, program.rank)


def _different(unit: Array, values: Array) -> dict[int, int]:
    """By unit, how many different values there are."""
    span = int(values.max(initial=0)) + 1
    pairs = distinct(unit.astype(np.int64) * span + values)
    return dict(Counter((pairs // span).tolist()))


def _edges(steps: nx.DiGraph[int], nodes: dict[int, Node], path: Path) -> list[Edge]:
    found: list[Edge] = []
    for one, other, counts in steps.edges(data=True):
        back = nodes[one].position > nodes[other].position
        if back and set(counts) == {"collective"} and steps.has_edge(other, one):
            continue  # a meeting ties both ways; one line shows it
        found.append(Edge(one, other, dict[str, Any](counts), back, (one, other) in path.edges))
    return found


def _reduce(graph: Graph) -> None:
    """Leave out mere order that follows from other order."""
    import networkx as nx

    forward: nx.DiGraph[int] = nx.DiGraph()
    forward.add_nodes_from(graph.nodes)
    forward.add_edges_from((e.source, e.target) for e in graph.edges if e.orders)
    kept = nx.transitive_reduction(forward)
    graph.edges[:] = [
        edge
        for edge in graph.edges
        if edge.back
        or edge.critical
        or edge.kind != "order"
        or kept.has_edge(edge.source, edge.target)
    ]


def counted(number: int, thing: str) -> str:
    """`1 rank`, `2 ranks`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
