"""The step graph: a node for each statement instance, over all ranks; and a deadlock's witness.

A statement instance is one statement in one iteration, whoever runs it: its events have one `key`.
The graph is small however many ranks there are, so passes and drawings can walk it. It shows what
the whole world does step by step, not what waits for what: where ranks run the same statements at
different times (a pipeline, a chain) the steps form cycles although the events do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from commlang.program.matching import match_collectives, match_messages
from commlang.program.points import find_points
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import networkx as nx

    from commlang.program.columns import Array, Program

_Ties = tuple[str, "Array", "Array"]
"""What ties steps, and the numbers of the steps (or joins) at either end, once per event."""


def step_graph(program: Program, key: Array | None = None) -> nx.DiGraph[int]:
    """The steps of a program as a new DiGraph; docs/graph.md documents its attributes.

    Nodes are keys. Where several steps side by side are followed by several others, a join with
    the number -1 - key, key being the first step after it, stands between them. `key` has another
    number for each row: rows of equal ones are then one step, as in `key=program.site`, by which
    all iterations of a statement are.
    """
    import networkx as nx

    steps = _Steps.of(program, program.key if key is None else key)
    graph: nx.DiGraph[int] = nx.DiGraph(name=program.name)
    for number, node in enumerate(steps.keys.tolist()):
        graph.add_node(node, kind="step", **steps.attributes(program, number))
    for kind, source, target in _ties(program, steps):
        pairs, counts = np.unique(source * (2 * len(steps.keys)) + target, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            one, other = divmod(pair, 2 * len(steps.keys))
            _tie(graph, steps.node(one), steps.node(other), kind, count)
    return graph


@record
class _Steps:
    """Steps are numbered by key; the join before step i has the number `len(keys) + i`."""

    keys: Array
    of_row: Array
    first_row: Array
    ranks: Array
    bytes: Array

    @classmethod
    def of(cls, program: Program, key: Array) -> _Steps:
        keys, first, number, ranks = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        number = number.reshape(-1)
        total = np.zeros(len(keys), dtype=np.int64)
        np.add.at(total, number, _bytes(program))
        return cls(keys, number, first, ranks, total)

    def node(self, number: int) -> int:
        count = len(self.keys)
        return int(self.keys[number]) if number < count else -1 - int(self.keys[number - count])

    def attributes(self, program: Program, number: int) -> dict[str, Any]:
        row = int(self.first_row[number])
        return {
            **_statement(program, row),
            "site": int(program.site[row]),
            "ranks": int(self.ranks[number]),
            "bytes": int(self.bytes[number]),
        }


def _statement(program: Program, row: int) -> dict[str, Any]:
    site = program.site_of(row)
    line, column = site.source.position(site.span.start)
    place = {"line": line, "column": column, "path": site.source.path}
    return {"operation": site.name, **place, "text": program.text(row)}


def _bytes(program: Program) -> Array:
    """The bytes that each event names: the lengths of all its operands."""
    operands = program.operands
    sizes = np.array([block.dtype.itemsize for block in program.buffers], dtype=np.int64)
    block = np.searchsorted(program.buffer_base, operands.buffer, side="right") - 1
    each = operands.length * sizes[block] if len(block) else operands.length
    upto = np.concatenate([[0], np.cumsum(each)])
    first = np.maximum(program.first, 0)
    return upto[first + program.count] - upto[first]


def _tie(graph: nx.DiGraph[int], one: int, other: int, kind: str, count: int) -> None:
    """Count ties between two steps on their edge, those within a step on its node."""
    for node in (one, other):
        if node not in graph:
            graph.add_node(node, kind="join")
    if one != other and not graph.has_edge(one, other):
        graph.add_edge(one, other)
    counts = graph.nodes[one] if one == other else graph.edges[one, other]
    counts[kind] = counts.get(kind, 0) + count


def _ties(program: Program, steps: _Steps) -> Iterator[_Ties]:
    for source, target in _orders(program, steps):
        yield "order", source, target
    later = np.flatnonzero(program.wait >= 0)
    yield "async", steps.of_row[later], steps.of_row[program.wait[later]]
    messages = match_messages(program)
    yield "message", steps.of_row[messages.send], steps.of_row[messages.recv]
    yield from _meetings(program, steps)


def _orders(program: Program, steps: _Steps) -> Iterator[tuple[Array, Array]]:
    """Pairs of steps that follow one another on some rank.

    Steps that end at a point come before those that start there. With several on both sides, all
    pairs would be too many: a join takes their place.
    """
    points = find_points(program, local=True)
    after, start, rows = points.after, points.start, np.arange(len(program))
    ending = np.bincount(after, minlength=points.count)
    starting = np.bincount(start, minlength=points.count)
    wide = (ending > 1) & (starting > 1)
    ends_at, starts_at = (np.zeros(points.count, dtype=np.int64) for _ in range(2))
    ends_at[after] = rows  # read only where one row ends
    starts_at[start[::-1]] = rows[::-1]  # the first of those that start
    one_before = rows[ending[start] == 1]
    many_before = rows[(ending[after] > 1) & (starting[after] == 1)]
    number, joins = steps.of_row, len(steps.keys) + steps.of_row
    yield number[ends_at[start[one_before]]], number[one_before]
    yield number[many_before], number[starts_at[after[many_before]]]
    into, out = rows[wide[after]], rows[wide[start]]
    yield number[into], joins[starts_at[after[into]]]
    yield joins[starts_at[start[out]]], number[out]


def _meetings(program: Program, steps: _Steps) -> Iterator[_Ties]:
    """Collectives: all calls of an instance are one step, or are tied both ways to the first."""
    calls = match_collectives(program)
    number = steps.of_row[calls.row]
    if not len(number):
        return
    lowest = np.minimum.reduceat(number, calls.start[:-1])
    highest = np.maximum.reduceat(number, calls.start[:-1])
    same = calls.whole & (lowest == highest)
    yield "collective", lowest[same], highest[same]
    instance = np.repeat(np.arange(len(lowest)), np.diff(calls.start))
    mixed = calls.whole[instance] & (number != lowest[instance])
    yield "collective", lowest[instance[mixed]], number[mixed]
    yield "collective", number[mixed], lowest[instance[mixed]]


class WaitLike(Protocol):
    """A row that waits and the row, on another rank, that it waits for."""

    @property
    def waiting(self) -> int: ...
    @property
    def awaited(self) -> int: ...


def witness_graph(program: Program, waits: Iterable[WaitLike]) -> nx.DiGraph[tuple[int, int]]:
    """A deadlock's ring of waits (`commlang.checks.deadlock.waits`) as a new DiGraph.

    Nodes are (rank, row). An edge of kind "waits" leads from a row to the one it waits for; one of
    kind "behind" from an awaited row to the row of its rank that has to end before it can start.
    Each edge's `text` says so in words.
    """
    import networkx as nx

    graph: nx.DiGraph[tuple[int, int]] = nx.DiGraph(name=program.name)
    ring = list(waits)
    for wait in ring:
        here, there = (_add(graph, program, row) for row in (wait.waiting, wait.awaited))
        text = f"{_event(program, wait.waiting)} waits for {_event(program, wait.awaited)}"
        graph.add_edge(here, there, kind="waits", text=text)
    for wait, following in zip(ring, ring[1:] + ring[:1], strict=True):
        if wait.awaited == following.waiting:
            continue
        text = f"{_event(program, wait.awaited)} comes after {_event(program, following.waiting)}"
        here, there = (_add(graph, program, row) for row in (wait.awaited, following.waiting))
        graph.add_edge(here, there, kind="behind", text=text)
    return graph


def _add(graph: nx.DiGraph[tuple[int, int]], program: Program, row: int) -> tuple[int, int]:
    node = int(program.rank[row]), int(row)
    graph.add_node(node, rank=node[0], event=node[1], **_statement(program, row))
    return node


def _event(program: Program, row: int) -> str:
    return f"rank {int(program.rank[row])} at {program.where(row)} `{program.text(row)}`"
