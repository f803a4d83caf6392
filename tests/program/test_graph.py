"""The dependency graph: what it holds, that it is right, and that NetworkX can work on it."""

from __future__ import annotations

import copy
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from commlang.operations import Kind
from commlang.program import Program, build
from commlang.program.constraints import rendezvous
from commlang.program.cycles import find_cycle
from commlang.program.graph import EventGraph
from commlang.program.matching import match_collectives, match_messages
from commlang.program.points import find_points
from commlang.resolve.modules import load_module
from commlang.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parents[2]
PATTERNS = sorted((ROOT / "patterns").glob("**/*.cl"))

EXCHANGE = """\
pattern exchange(x: float32[4], y: float32[4]):
    fill(x, 1)
    parallel:
        send(x, dst=ranks.next, tag=3)
        recv(y, src=ranks.prev, tag=3)
    work = async all_reduce(x)
    scale(y, 2)
    wait(work)
"""
BLOCKING = """\
pattern ring(x: float32[4], y: float32[4]):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
"""


def program_of(text: str, world: int = 2) -> Program:
    module = load_module(Source(text, "test.cl"))
    return build(module.symbols[module.exported[0]], world)


def kinds(graph: nx.DiGraph[Any], node: int) -> dict[str, list[str]]:
    """The nodes after a node, by the kind of the edge."""
    found: dict[str, list[str]] = {}
    for other, edge in graph.adj[node].items():
        data = graph.nodes[other]
        name = data.get("operation", "")
        rank = f" {data['rank']}" if "rank" in data else ""
        found.setdefault(edge["kind"], []).append(f"{data['kind']} {name}{rank}".replace("  ", " "))
    return {kind: sorted(names) for kind, names in found.items()}


def test_the_nodes_of_events_carry_their_statement() -> None:
    program = program_of(EXCHANGE)
    graph = program.graph()
    row = 1
    assert program.kind[row] == Kind.SEND
    expected = {
        "event": 1,
        "rank": 0,
        "operation": "send",
        "peer": 1,
        "tag": 3,
        "group": "world",
        "line": 4,
        "column": 9,
        "path": "test.cl",
        "text": "send(x, dst=ranks.next, tag=3)",
    }
    assert graph.nodes[2] == {"kind": "start", **expected}
    assert graph.nodes[3] == {"kind": "end", **expected}
    assert dict(graph.nodes[3]) == graph.nodes[3].copy() == {"kind": "end", **expected}
    fill = graph.nodes[0]
    assert (fill["operation"], fill["line"], fill["text"]) == ("fill", 2, "fill(x, 1)")
    assert {"peer", "tag", "group"}.isdisjoint(fill)
    assert "tag" not in graph.nodes[6]
    assert repr(graph.nodes[13]).startswith("{'kind': 'end', 'event': 6, 'rank': 1, ")


def test_points_and_hubs_are_nodes() -> None:
    program = program_of(EXCHANGE)
    graph = program.graph()
    events = range(2 * len(program))
    assert len(program) == 12
    others = [dict(graph.nodes[n]) for n in graph if n not in events]
    points = [{"kind": "point", "rank": rank} for rank in (0, 1) for _ in range(6)]
    hub = {"kind": "hub", "operation": "all_reduce", "group": "world", "turn": 0}
    assert others == [*points, hub]
    assert len(graph) == graph.number_of_nodes() == graph.order() == 24 + 12 + 1


def test_edges_say_why_one_comes_before_the_other() -> None:
    graph = program_of(EXCHANGE).graph()
    first, hub = 24, 36
    assert kinds(graph, first) == {"order": ["start fill 0"]}
    assert kinds(graph, 0) == {"order": ["end fill 0"]}
    assert kinds(graph, first + 1) == {"branch": ["start recv 0", "start send 0"]}
    assert kinds(graph, 2) == {"order": ["end send 0"], "message": ["end recv 1"]}
    assert kinds(graph, 4) == {"order": ["end recv 0"], "message": ["end send 1"]}
    assert kinds(graph, 5) == {"branch": ["point 0"]}
    assert kinds(graph, 6) == {
        "async": ["end all_reduce 0"],
        "order": ["point 0"],
        "collective": ["hub all_reduce"],
    }
    assert kinds(graph, hub) == {"collective": ["end all_reduce 0", "end all_reduce 1"]}
    assert kinds(graph, 7) == {"async": ["end wait 0"]}
    assert kinds(graph, first + 5) == {}
    # the chain of points runs through the events between them
    assert [n for n in nx.topological_sort(graph) if first <= n < first + 6] == [*range(24, 30)]


def test_an_event_that_runs_beside_its_wait_is_not_ordered_with_it() -> None:
    graph = program_of(EXCHANGE).graph()
    before = nx.descendants(graph, 6)
    assert {8, 9, 10, 11, 7} <= before, "scale and wait start after the all_reduce has started"
    assert 8 not in nx.descendants(graph, 7)
    assert 4 not in nx.descendants(graph, 3), "siblings in a parallel are not ordered"


def test_sequences_inside_parallel_are_ordered_within_and_not_between() -> None:
    program = program_of(
        "pattern p(x: float32[4], y: float32[4], z: float32[4]):\n"
        "    parallel:\n"
        "        sequence:\n"
        "            fill(x, 1)\n"
        "            parallel:\n"
        "                scale(x, 2)\n"
        "                fill(z, 3)\n"
        "        fill(y, 2)\n"
        "    fill(x, 4)\n",
        1,
    )
    graph = program.graph()
    assert [program.text(row) for row in range(5)] == [
        "fill(x, 1)",
        "scale(x, 2)",
        "fill(z, 3)",
        "fill(y, 2)",
        "fill(x, 4)",
    ]
    start, end = range(0, 10, 2), range(1, 10, 2)
    after = {row: nx.descendants(graph, end[row]) & set(start) for row in range(5)}
    assert after == {0: {2, 4, 8}, 1: {8}, 2: {8}, 3: {8}, 4: set()}
    ranks = {data["rank"] for _, data in graph.nodes(data=True)}
    assert ranks == {0}


ASYNC_IN_BRANCH = """\
pattern p(x: float32[4], y: float32[4], z: float32[4]):
    parallel:
        later(x)
        fill(z, 2)

pattern later(x: float32[4]):
    work = async all_reduce(x)
    fill(x[:1], 1)
    wait(work)
    fill(x, 1)
"""


def test_an_async_event_of_a_called_pattern_precedes_what_follows_in_its_branch() -> None:
    program = program_of(ASYNC_IN_BRANCH)
    graph = program.graph()
    names = [str(graph.nodes[2 * row]["operation"]) for row in range(5)]
    assert names == ["all_reduce", "fill", "wait", "fill", "fill"]
    assert nx.descendants(graph, 0) & set(range(0, 10, 2)) == {2, 4, 6}
    assert nx.descendants(graph, 1) & set(range(0, 10, 2)) == {6}


def test_a_deadlock_is_a_cycle_and_a_cycle_names_its_statements() -> None:
    graph = program_of(BLOCKING, 3).graph()
    assert not nx.is_directed_acyclic_graph(graph)
    cycle = nx.find_cycle(graph)
    told = {(graph.nodes[n]["kind"], graph.nodes[n].get("text")) for n, _ in cycle}
    assert told == {
        ("end", "send(x, dst=ranks.next)"),
        ("point", None),
        ("start", "recv(y, src=ranks.prev)"),
    }
    assert {graph.nodes[n].get("rank") for n, _ in cycle} == {0, 1, 2}


ALONE = """\
pattern p(x: float32[4]):
    if rank == 0:
        send(x, dst=1)
        barrier()
"""


def test_what_nothing_meets_is_not_tied() -> None:
    text = (
        "pattern p(x: float32[4]):\n    if rank == 0:\n        send(x, dst=1)\n        barrier()\n"
    )
    graph = program_of(text).graph()
    assert len(graph) == 4 + 4 + 1
    assert [kind for _, _, kind in graph.edges(data="kind")] == ["order"] * 6
    assert graph.degree(8) == 0


def test_a_program_without_events_has_one_point_a_rank() -> None:
    graph = program_of("pattern p(x: float32[4]):\n    pass\n", 3).graph()
    assert dict(graph.nodes(data=True)) == {r: {"kind": "point", "rank": r} for r in range(3)}
    assert graph.number_of_edges() == 0
    assert list(graph.edges) == []


# ------------------------------------------------------------------ as a NetworkX graph


def same(lazy: nx.DiGraph[Any], ordinary: nx.DiGraph[Any]) -> None:
    """Two graphs agree in all that NetworkX shows of them."""
    assert dict(ordinary.nodes(data=True)) == dict(lazy.nodes(data=True))
    assert list(ordinary.edges(data="kind")) == list(lazy.edges(data="kind"))
    assert set(ordinary.in_edges(data="kind")) == set(lazy.in_edges(data="kind"))
    assert dict(ordinary.in_degree) == dict(lazy.in_degree)
    assert dict(ordinary.out_degree) == dict(lazy.out_degree)
    assert ordinary.number_of_edges() == lazy.number_of_edges() == len(lazy.edges)
    assert ordinary.size() == lazy.size() == lazy.size(weight="none")


def test_copies_are_ordinary_graphs() -> None:
    graph = program_of(EXCHANGE, 3).graph()
    for made in (nx.DiGraph(graph), graph.copy(), copy.deepcopy(graph.copy())):
        assert not nx.is_frozen(made)
        same(graph, made)
        made.add_edge(0, "more")
        made.nodes[0]["colour"] = "red"
        made.edges[0, 1]["weight"] = 2
        assert made.number_of_edges() == graph.number_of_edges() + 1
    assert "colour" not in graph.nodes[0]
    assert dict(graph.edges[0, 1]) == {"kind": "order"}
    assert graph.copy().graph == graph.graph == {"name": "exchange"}
    assert set(graph.reverse().edges) == {(b, a) for a, b in graph.edges}
    assert set(graph.reverse(copy=False).edges) == {(b, a) for a, b in graph.edges}
    assert set(map(frozenset, graph.to_undirected().edges)) == set(map(frozenset, graph.edges))


def test_subgraphs_and_views() -> None:
    graph = program_of(EXCHANGE, 3).graph()
    full = nx.DiGraph(graph)
    chosen = [n for n, kind in graph.nodes(data="kind") if kind in ("start", "end")]
    same(graph.subgraph(chosen), full.subgraph(chosen))
    same(graph.subgraph(chosen).copy(), full.subgraph(chosen).copy())
    same(graph.subgraph(chosen).subgraph(range(8)), full.subgraph(range(8)))
    edges = [(a, b) for a, b, kind in graph.edges(data="kind") if kind == "message"]
    assert len(edges) == 6
    assert list(graph.edge_subgraph(edges).edges) == list(full.edge_subgraph(edges).edges)

    def of_rank_1(node: int) -> bool:
        return graph.nodes[node].get("rank") == 1

    view = nx.subgraph_view(graph, filter_node=of_rank_1)
    assert {data["rank"] for _, data in view.nodes(data=True)} == {1}
    assert nx.is_directed_acyclic_graph(view)


def test_algorithms_give_what_they_give_on_an_ordinary_graph() -> None:
    graph = program_of(EXCHANGE, 3).graph()
    full = nx.DiGraph(graph)
    assert list(nx.topological_sort(graph)) == list(nx.topological_sort(full))
    assert list(nx.topological_generations(graph)) == list(nx.topological_generations(full))
    assert nx.dag_longest_path(graph) == nx.dag_longest_path(full)
    for node in graph:
        assert nx.descendants(graph, node) == nx.descendants(full, node)
        assert nx.ancestors(graph, node) == nx.ancestors(full, node)
    assert nx.is_weakly_connected(graph)
    assert nx.is_isomorphic(graph, full)
    reduced = nx.transitive_reduction(graph)
    assert set(nx.transitive_closure(reduced).edges) == set(nx.transitive_closure(graph).edges)


def test_membership_is_that_of_a_dict() -> None:
    graph = program_of(EXCHANGE).graph()
    last = len(graph) - 1
    for node in (0, last, np.int32(3), np.int64(last)):
        assert node in graph
        assert graph.out_degree(node) == len(graph.succ[node])
    for node in (-1, last + 1, "0", None, (0, 1)):
        assert node not in graph
        for read in (graph.nodes.__getitem__, graph.succ.__getitem__, graph.pred.__getitem__):
            with pytest.raises(KeyError):
                read(node)
    assert [0] not in graph
    assert graph.has_edge(0, 1)
    assert not graph.has_edge(1, 0)
    assert graph.number_of_edges(0, 1) == 1
    with pytest.raises(nx.NetworkXError, match="not in the digraph"):
        graph.successors(-1)
    with pytest.raises(KeyError):
        graph.edges[0, 1]["weight"]
    assert graph.edges[0, 1].get("weight", 1) == 1


def test_it_cannot_be_changed() -> None:
    graph = program_of(EXCHANGE).graph()
    assert nx.is_frozen(graph)
    for change in (
        lambda: graph.add_node(1),
        lambda: graph.add_edge(1, 2),
        lambda: graph.add_edges_from([(1, 2)]),
        lambda: graph.remove_node(1),
        lambda: graph.remove_edge(0, 1),
        lambda: graph.clear(),
    ):
        with pytest.raises(nx.NetworkXError, match="Frozen graph"):
            change()
    with pytest.raises(AttributeError):
        nx.set_node_attributes(graph, {0: {"colour": "red"}})
    with pytest.raises(TypeError, match="item assignment"):
        graph.nodes[0]["rank"] = 7
    with pytest.raises(TypeError, match="item assignment"):
        graph.edges[0, 1]["kind"] = "message"
    assert graph.nodes[0]["rank"] == 0


def test_nothing_is_computed_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(EXCHANGE)
    read: list[str] = []
    for name in ("find_points", "match_collectives", "match_messages", "rendezvous"):

        def called(*args: Any, _name: str = name, **more: Any) -> Any:
            read.append(_name)
            return globals()[_name](*args, **more)

        monkeypatch.setattr(f"commlang.program.graph_arrays.{name}", called)
    graph = program.graph()
    assert graph.nodes[3]["operation"] == "send"
    assert 3 in graph
    assert read == []
    assert len(graph) == 37
    assert read == ["find_points", "match_collectives"]
    assert list(graph.successors(0)) == [1]
    assert list(graph.predecessors(1)) == [0]
    assert read == ["find_points", "match_collectives", "match_messages", "rendezvous"]


def test_made_without_views_it_is_an_ordinary_graph() -> None:
    graph = EventGraph([(0, 1), (1, 2)])
    assert graph.number_of_edges() == graph.size() == 2
    graph.remove_edge(0, 1)
    assert graph.size() == 1


# ------------------------------------------------------------------ the meaning of the edges


class Run:
    """A world that starts and ends events as the language says, told independently of the graph.

    Understands patterns whose only nesting is `parallel:` at the top.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.done: set[int] = set()
        partner = match_messages(program).partner
        self.meets = {r: {int(p)} for r, p in enumerate(partner.tolist()) if p >= 0}
        calls = match_collectives(program)
        for low, high in pairwise(calls.start.tolist()):
            self.meets |= {int(r): set(calls.row[low:high].tolist()) for r in calls.row[low:high]}

    def may(self, node: int) -> bool:
        return self._may_end(node // 2) if node % 2 else self._may_start(node // 2)

    def _may_start(self, row: int) -> bool:
        """All before it on its rank have ended, save siblings; the async ones have started."""
        program = self.program
        for other in program.rows_of(int(program.rank[row])):
            if other == row:
                return True
            sibling = program.nest[row] >= 0 and program.nest[row] == program.nest[other]
            later = program.site_of(other).asynchronous
            if not sibling and (2 * other if later else 2 * other + 1) not in self.done:
                return False
        raise AssertionError

    def _may_end(self, row: int) -> bool:
        """All that it meets and itself have started; what it joins has ended."""
        started = {2 * other for other in self.meets.get(row, ())} | {2 * row}
        joined = np.flatnonzero(self.program.wait == row).tolist()
        return started | {2 * other + 1 for other in joined} <= self.done

    def to_the_end(self) -> bool:
        """Start and end whatever may; whether all events ended."""
        left = set(range(2 * len(self.program)))
        while True:
            ready = {node for node in left if self.may(node)}
            if not ready:
                return not left
            self.done |= ready
            left -= ready


@st.composite
def patterns(draw: st.DrawFn) -> tuple[str, int]:
    """Every rank does its half of each meeting, blocking, async or with the next in a batch."""
    world = draw(st.integers(2, 3))
    meetings: list[tuple[int, ...]] = []
    for _ in range(draw(st.integers(1, 5))):
        ends = draw(st.permutations(range(world)))
        meetings.append(tuple(ends[: draw(st.integers(2, 3))]))
    lines = ["pattern p(x: float32[4]):"]
    for rank in range(world):
        own = [(number, ranks) for number, ranks in enumerate(meetings) if rank in ranks]
        if draw(st.booleans()):
            own = draw(st.permutations(own))
        lines += [f"    if rank == {rank}:", *(" " * 8 + line for line in ["fill(x, 1)"])]
        lines += [" " * 8 + line for line in body(draw, rank, own)]
    return "\n".join(lines) + "\n", world


def body(draw: st.DrawFn, rank: int, own: Iterable[tuple[int, tuple[int, ...]]]) -> Sequence[str]:
    lines: list[str] = []
    waits: list[str] = []
    batch = False
    for number, ranks in own:
        half = "barrier()"
        if len(ranks) == 2:
            sends = rank == ranks[0]
            word, key, peer = ("send", "dst", ranks[1]) if sends else ("recv", "src", ranks[0])
            half = f"{word}(x, {key}={peer}, tag={number})"
        form = draw(st.sampled_from(["plain", "async", "batch", "local"]))
        if form == "batch":
            lines += ([] if batch else ["parallel:"]) + [f"    {half}"]
        elif form == "async":
            lines.append(f"h{number} = async {half}")
            waits.append(f"wait(h{number})")
        else:
            lines += ["scale(x, 2)"] * (form == "local") + [half]
        batch = form == "batch"
        if waits and draw(st.booleans()):
            lines.append(waits.pop())
            batch = False
    return [*lines, *waits]


@given(patterns())
def test_it_is_acyclic_if_and_only_if_the_program_ends(case: tuple[str, int]) -> None:
    program = program_of(*case)
    graph = program.graph()
    ends = Run(program).to_the_end()
    event("ends" if ends else "deadlock")
    assert nx.is_directed_acyclic_graph(graph) == ends
    for local in (False, True):
        points = find_points(program, local=local)
        edges = rendezvous(program, match_messages(program), match_collectives(program), points)
        assert (find_cycle(points, edges) is None) == ends


@given(patterns())
def test_each_topological_order_is_a_legal_order_of_execution(case: tuple[str, int]) -> None:
    program = program_of(*case)
    graph = program.graph()
    if not nx.is_directed_acyclic_graph(graph):
        return
    last_first = nx.lexicographical_topological_sort(graph, key=lambda node: -node)
    for order in (nx.topological_sort(graph), last_first):
        run = Run(program)
        for node in order:
            if node < 2 * len(program):
                assert run.may(node), program.text(node // 2)
                run.done.add(node)
        assert len(run.done) == 2 * len(program)


@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_the_library_has_acyclic_graphs(path: Path) -> None:
    module = load_module(Source.read(path))
    for name in module.exported:
        program = build(module.symbols[name], 4)
        graph = program.graph()
        assert nx.is_directed_acyclic_graph(graph)
        assert graph.number_of_edges() <= 6 * len(program)
        assert set(graph.in_edges) == set(graph.edges)
        pieces = nx.get_edge_attributes(graph, "kind")
        assert set(pieces.values()) <= {"order", "message", "collective", "async", "branch"}
