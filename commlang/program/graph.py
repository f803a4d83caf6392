"""The dependency graph as a NetworkX graph that costs nothing until it is read.

Its node and adjacency mappings are views over arrays, so ten million events need no ten million
dicts. NetworkX's own functions work on it as on any other graph. See docs/graph.md for its
attributes. Deadlock is not decided here but on arrays (`commlang.program.cycles`), far faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from commlang.program.graph_arrays import EDGE_KINDS, GraphArrays

if TYPE_CHECKING:
    from commlang.program.columns import Program
    from commlang.program.graph_arrays import Rows

    _DiGraph = nx.DiGraph[Any]
else:
    _DiGraph = nx.DiGraph


def dependency_graph(program: Program) -> nx.DiGraph[Any]:
    """The dependency graph of a program: read-only, acyclic if and only if it cannot deadlock.

    Any topological order of the nodes is a legal order of execution. Attempts to change the graph
    raise `networkx.NetworkXError`; `graph.copy()` and `networkx.DiGraph(graph)` are ordinary ones.
    Of an incomplete program (messages or calls that nothing meets) only what meets is tied.
    """
    arrays = GraphArrays(program)
    graph = EventGraph(name=program.name)
    views: dict[str, Mapping[Any, Any]] = {
        "_node": _Nodes(arrays),
        "_succ": _Adjacency(arrays, lambda: arrays.successors),
        "_pred": _Adjacency(arrays, lambda: arrays.predecessors),
    }
    for name, view in views.items():
        setattr(graph, name, view)
    nx.freeze(graph)  # pyright: ignore[reportUnknownMemberType]
    return graph


class EventGraph(_DiGraph):
    """A DiGraph that knows how many edges there are. Made with no views, it is an ordinary one."""

    def size(self, weight: str | None = None) -> Any:
        """The number of edges, or the sum of their weights, as `networkx.Graph.size` gives it."""
        view: object = vars(self)["_succ"]
        if weight is None and isinstance(view, _Adjacency):
            return view.edges
        return super().size(weight)


class _ByNode(Mapping[int, Any]):
    """What nodes 0, 1, … are mapped to, computed when read."""

    def __init__(self, arrays: GraphArrays) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return self._arrays.count

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._arrays.count))

    def __contains__(self, node: object) -> bool:
        hash(node)  # as a dict does: NetworkX wants a TypeError for lists and the like
        if not isinstance(node, (int, np.integer)) or node < 0:
            return False
        return bool(node < 2 * self._arrays.events or node < self._arrays.count)


class _Nodes(_ByNode):
    def __getitem__(self, node: int) -> NodeAttributes:
        if node not in self:
            raise KeyError(node)
        return NodeAttributes(self._arrays, int(node))


class _Adjacency(_ByNode):
    def __init__(self, arrays: GraphArrays, rows: Callable[[], Rows]) -> None:
        super().__init__(arrays)
        self._compute = rows

    @cached_property
    def _rows(self) -> tuple[memoryview[int], memoryview[int], memoryview[int]]:
        """Pointer, neighbour and kind; item by item, views of arrays are faster than arrays."""
        rows = self._compute()
        return rows.pointer.data, rows.other.data, rows.kind.data

    @property
    def edges(self) -> int:
        return len(self._rows[1])

    def __getitem__(self, node: int) -> dict[int, EdgeAttributes]:
        pointer, other, kind = self._rows
        try:
            span = range(pointer[node], pointer[node + 1]) if node >= 0 else None
        except (IndexError, TypeError):
            span = None
        if span is None:
            raise KeyError(node)
        return {other[i]: _EDGES[kind[i]] for i in span}


class _Attributes(Mapping[str, Any]):
    """Attributes that can be read only; a copy is an ordinary dict."""

    __slots__ = ()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(self.copy())

    def copy(self) -> dict[str, Any]:
        """The attributes as a dict."""
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return self.copy()


class EdgeAttributes(_Attributes):
    """The attribute of an edge: its kind."""

    __slots__ = ("_kind",)

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __getitem__(self, name: str) -> str:
        if name != "kind":
            raise KeyError(name)
        return self._kind

    def __iter__(self) -> Iterator[str]:
        yield "kind"


_EDGES = tuple(map(EdgeAttributes, EDGE_KINDS))


class NodeAttributes(_Attributes):
    """The attributes of a node, each computed when it is read."""

    __slots__ = ("_arrays", "_index", "_readers")

    def __init__(self, arrays: GraphArrays, node: int) -> None:
        self._arrays = arrays
        if node < 2 * arrays.events:
            self._index, self._readers = node // 2, (_END if node % 2 else _START)
        elif node < arrays.first_hub:
            self._index, self._readers = node - 2 * arrays.events, _POINT
        else:
            self._index, self._readers = node - arrays.first_hub, _HUB

    def __getitem__(self, name: str) -> Any:
        value = self._readers[name](self._arrays, self._index)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.copy())

    def copy(self) -> dict[str, Any]:
        values = {name: read(self._arrays, self._index) for name, read in self._readers.items()}
        return {name: value for name, value in values.items() if value is not None}


_Reader = Callable[[GraphArrays, int], Any]
"""Reads an attribute of a row, a point or a hub; None for one that it has not."""


def _peer(arrays: GraphArrays, row: int) -> int | None:
    peer = int(arrays.program.peer[row])
    return None if peer < 0 else peer


def _tag(arrays: GraphArrays, row: int) -> int | None:
    return int(arrays.program.tag[row]) if arrays.program.site_of(row).kind.is_message else None


def _group(arrays: GraphArrays, row: int) -> str | None:
    group = int(arrays.program.group[row])
    return None if group < 0 else arrays.program.groups.entries[group].label


def _position(arrays: GraphArrays, row: int) -> tuple[int, int]:
    site = arrays.program.site_of(row)
    return site.source.position(site.span.start)


def _call(arrays: GraphArrays, hub: int) -> int:
    """One of the calls that meet at a hub."""
    return int(arrays.calls.row[arrays.calls.start[hub]])


def _always(kind: str) -> _Reader:
    return lambda arrays, index: kind


_EVENT: dict[str, _Reader] = {
    "event": lambda arrays, row: row,
    "rank": lambda a, row: int(a.program.rank[row]),
    "operation": lambda a, row: a.program.site_of(row).name,
    "peer": _peer,
    "tag": _tag,
    "group": _group,
    "line": lambda a, row: _position(a, row)[0],
    "column": lambda a, row: _position(a, row)[1],
    "path": lambda a, row: a.program.site_of(row).source.path,
    "text": lambda a, row: a.program.text(row),
}
_START: dict[str, _Reader] = {"kind": _always("start"), **_EVENT}
_END: dict[str, _Reader] = {"kind": _always("end"), **_EVENT}
_POINT: dict[str, _Reader] = {
    "kind": _always("point"),
    "rank": lambda a, point: int(a.point_rank[point]),
}
_HUB: dict[str, _Reader] = {
    "kind": _always("hub"),
    "operation": lambda a, hub: a.program.site_of(_call(a, hub)).name,
    "group": lambda a, hub: _group(a, _call(a, hub)),
    "turn": lambda a, hub: int(a.calls.turn[hub]),
}
