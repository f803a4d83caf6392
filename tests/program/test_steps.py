"""The step graph: statements over all ranks, what ties them; and the graph of a deadlock."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pytest

from commlang.checks.deadlock import waits
from commlang.checks.facts import gather_facts
from commlang.program import Program, build
from commlang.program.constraints import rendezvous
from commlang.program.cycles import find_cycle
from commlang.program.matching import match_collectives, match_messages
from commlang.program.steps import step_graph, witness_graph
from commlang.resolve.modules import load_module
from commlang.source import Source

if TYPE_CHECKING:
    from commlang.checks.deadlock import Wait

ROOT = Path(__file__).parents[2]
PATTERNS = sorted((ROOT / "patterns").glob("**/*.cl"))


def program_of(text: str, world: int) -> Program:
    module = load_module(Source(text, "test.cl"))
    return build(module.symbols[module.exported[0]], world)


def ties(graph: nx.DiGraph[int]) -> dict[tuple[str, str], dict[str, Any]]:
    """The edges, each end told by its statement, or `join before` one."""

    def name(node: int) -> str:
        return f"join {graph.nodes[-1 - node]['text']}" if node < 0 else graph.nodes[node]["text"]

    return {(name(a), name(b)): dict(data) for a, b, data in graph.edges(data=True)}


RING = """\
pattern ring(x: bfloat16[6], y: bfloat16[6], z: float64[2]):
    fill(x, 1)
    for s in range(2):
        parallel:
            send(x[:s + 2], dst=ranks.next)
            recv(y[:s + 2], src=ranks.prev)
    all_reduce(z)
    if rank < 2:
        scale(z, 2)
"""


def test_steps_can_be_whole_statements() -> None:
    program = program_of(RING, 5)
    by_site = step_graph(program, program.site)
    told = {data["text"]: data["bytes"] for n, data in by_site.nodes(data=True) if n >= 0}
    by_key = step_graph(program)
    sums: dict[str, int] = {}
    for number, data in by_key.nodes(data=True):
        if number >= 0:
            sums[data["text"]] = sums.get(data["text"], 0) + data["bytes"]
    assert told == sums
    assert len(told) == 5
    names = {n: data["text"] for n, data in by_site.nodes(data=True) if n >= 0}
    (send,) = (n for n, text in names.items() if text.startswith("send"))
    (recv,) = (n for n, text in names.items() if text.startswith("recv"))
    assert by_site.edges[send, recv]["message"] == 10


def test_a_step_is_a_statement_in_an_iteration_on_all_its_ranks() -> None:
    program = program_of(RING, 5)
    graph = step_graph(program)
    names = ("text", "line", "column", "operation", "ranks", "bytes")
    told = [tuple(graph.nodes[n][name] for name in names) for n in sorted(graph) if n >= 0]
    send, recv = "send(x[:s + 2], dst=ranks.next)", "recv(y[:s + 2], src=ranks.prev)"
    assert told == [
        ("fill(x, 1)", 2, 5, "fill", 5, 5 * 12),
        (send, 5, 13, "send", 5, 5 * 4),
        (recv, 6, 13, "recv", 5, 5 * 4),
        (send, 5, 13, "send", 5, 5 * 6),
        (recv, 6, 13, "recv", 5, 5 * 6),
        ("all_reduce(z)", 7, 5, "all_reduce", 5, 5 * 16),
        ("scale(z, 2)", 9, 9, "scale", 2, 2 * 16),
    ]
    for _, data in graph.nodes(data=True):
        if data["kind"] == "step":
            site = program.sites[data["site"]]
            assert (site.name, site.source.path) == (data["operation"], data["path"])
    assert graph.graph == {"name": "ring"}
    assert not nx.is_frozen(graph)


def test_edges_count_what_ties_two_steps() -> None:
    graph = step_graph(program_of(RING, 5))
    fill, send, recv, send2, recv2, reduce, scale = sorted(n for n in graph if n >= 0)
    join = -1 - send2
    assert graph.nodes[join] == {"kind": "join"}
    assert {(a, b): dict(d) for a, b, d in graph.edges(data=True)} == {
        (fill, send): {"order": 5},
        (fill, recv): {"order": 5},
        (send, recv): {"message": 5},
        (send, join): {"order": 5},
        (recv, join): {"order": 5},
        (join, send2): {"order": 5},
        (join, recv2): {"order": 5},
        (send2, recv2): {"message": 5},
        (send2, reduce): {"order": 5},
        (recv2, reduce): {"order": 5},
        (reduce, scale): {"order": 2},
    }
    assert graph.nodes[reduce]["collective"] == 1
    assert "message" not in graph.nodes[send]


def test_an_order_that_only_some_ranks_follow_is_counted_by_rank() -> None:
    text = """\
pattern p(x: float32[4], y: float32[4]):
    fill(x, 1)
    parallel:
        if rank != 1:
            scale(x, 2)
        fill(y, 1)
    if rank == 2:
        fill(x, 3)
    scale(y, 4)
"""
    assert ties(step_graph(program_of(text, 3))) == {
        ("fill(x, 1)", "scale(x, 2)"): {"order": 2},
        ("fill(x, 1)", "fill(y, 1)"): {"order": 3},
        ("scale(x, 2)", "fill(x, 3)"): {"order": 1},
        ("fill(y, 1)", "fill(x, 3)"): {"order": 1},
        ("scale(x, 2)", "scale(y, 4)"): {"order": 1},
        ("fill(y, 1)", "scale(y, 4)"): {"order": 2},
        ("fill(x, 3)", "scale(y, 4)"): {"order": 1},
    }


def test_an_asynchronous_step_is_tied_to_its_wait() -> None:
    text = """\
pattern p(x: float32[4], y: float32[4]):
    for i in range(2):
        work[i] = async all_reduce(x[i])
    fill(y, 1)
    wait(work)
"""
    graph = step_graph(program_of(text, 3))
    first, second, fill, wait = sorted(graph)
    assert {(a, b): dict(d) for a, b, d in graph.edges(data=True)} == {
        (first, second): {"order": 3},
        (second, fill): {"order": 3},
        (fill, wait): {"order": 3},
        (first, wait): {"async": 3},
        (second, wait): {"async": 3},
    }
    assert [graph.nodes[n].get("collective") for n in sorted(graph)] == [1, 1, None, None]


def test_calls_of_one_collective_in_two_statements_are_tied_both_ways() -> None:
    text = """\
pattern p(x: float32[4]):
    if rank == 0:
        broadcast(x, src=0)
    else:
        fill(x, 0)
        broadcast(x, src=0, group=ranks)
"""
    assert ties(step_graph(program_of(text, 4))) == {
        ("broadcast(x, src=0)", "broadcast(x, src=0, group=ranks)"): {"collective": 3},
        ("broadcast(x, src=0, group=ranks)", "broadcast(x, src=0)"): {"collective": 3},
        ("fill(x, 0)", "broadcast(x, src=0, group=ranks)"): {"order": 3},
    }


def test_a_message_within_a_step_is_counted_on_its_node() -> None:
    text = """\
pattern p(x: float32[4], y: float32[4]):
    parallel for r in ranks:
        x @ r -> y @ (r + 1) % world
"""
    program = program_of(text, 4)
    messages = match_messages(program)
    within = program.key[messages.send] == program.key[messages.recv]
    graph = step_graph(program)
    counted = sum(d.get("message", 0) for _, d in graph.nodes(data=True))
    between = sum(d.get("message", 0) for _, _, d in graph.edges(data=True))
    assert (counted, between) == (int(within.sum()), int((~within).sum()))
    assert counted + between == len(messages.send) == 4


def test_wide_blocks_are_joined_instead_of_tied_pair_by_pair() -> None:
    wide = "    parallel:\n" + "".join(f"        fill(x[{i}], 1)\n" for i in range(30))
    graph = step_graph(program_of("pattern p(x: float32[30]):\n" + 3 * wide, 2))
    assert len(graph) == 3 * 30 + 2
    assert graph.number_of_edges() == 4 * 30
    assert len(list(nx.topological_generations(graph))) == 5


def test_steps_of_a_chain_form_a_cycle_and_its_events_do_not() -> None:
    text = """\
pattern chain(x: float32[4]):
    if rank > 0:
        recv(x, src=rank - 1)
    if rank < world - 1:
        send(x, dst=rank + 1)
"""
    program = program_of(text, 4)
    graph = step_graph(program)
    assert ties(graph) == {
        ("recv(x, src=rank - 1)", "send(x, dst=rank + 1)"): {"order": 2},
        ("send(x, dst=rank + 1)", "recv(x, src=rank - 1)"): {"message": 3},
    }
    assert not nx.is_directed_acyclic_graph(graph)
    assert nx.is_directed_acyclic_graph(program.graph())


def test_a_program_without_events_has_no_steps() -> None:
    graph = step_graph(program_of("pattern p(x: float32[4]):\n    pass\n", 3))
    assert (len(graph), graph.number_of_edges()) == (0, 0)


@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_the_step_graph_is_the_quotient_of_the_program(path: Path) -> None:
    module = load_module(Source.read(path))
    for name in module.exported:
        program = build(module.symbols[name], 4)
        graph = step_graph(program)
        steps = {n for n in graph if n >= 0}
        assert steps == set(program.key.tolist())
        sites = np.unique(np.stack([program.key, program.site]), axis=1)
        assert sites.shape[1] == len(steps), "a step has one statement"
        assert sum(graph.nodes[n]["ranks"] for n in steps) == len(program)
        tied = total(graph, "message"), total(graph, "async"), within_rank(graph)
        assert tied[:2] == (len(match_messages(program).send), int((program.wait >= 0).sum()))
        assert tied[2] == order_of(program)
        assert total(graph, "collective") >= len(match_collectives(program).start) - 1


def total(graph: nx.DiGraph[int], kind: str) -> int:
    parts = [*graph.nodes(data=True), *((0, d) for _, _, d in graph.edges(data=True))]
    return sum(data.get(kind, 0) for _, data in parts)


def within_rank(graph: nx.DiGraph[int]) -> set[tuple[int, int]]:
    """Pairs of steps of which one comes before the other, by the edges of order."""
    order: nx.DiGraph[int] = nx.DiGraph()
    order.add_edges_from((a, b) for a, b, data in graph.edges(data=True) if "order" in data)
    assert nx.is_directed_acyclic_graph(order)
    closure = nx.transitive_closure_dag(order)
    assert all(a < b for a, b in closure.edges if a >= 0 and b >= 0), "keys rise along order"
    return {(a, b) for a, b in closure.edges if a >= 0 and b >= 0}


def order_of(program: Program) -> set[tuple[int, int]]:
    """The same, from the events of each rank: what comes after what, from rank to rank."""
    graph = program.graph()
    own: nx.DiGraph[int] = nx.DiGraph()
    own.add_nodes_from(range(2 * len(program)))
    own.add_edges_from(
        (a, b) for a, b, kind in graph.edges(data="kind") if kind in ("order", "branch")
    )
    pairs: nx.DiGraph[int] = nx.DiGraph()
    pairs.add_edges_from(
        (int(program.key[row]), int(program.key[after // 2]))
        for row in range(len(program))
        for after in nx.descendants(own, 2 * row)
        if after < 2 * len(program) and after != 2 * row + 1
    )
    return set(nx.transitive_closure_dag(pairs).edges)


# ------------------------------------------------------------------ the witness


def deadlock_of(text: str, world: int) -> tuple[Program, list[Wait]]:
    program = program_of(text, world)
    facts = gather_facts(program)
    edges = rendezvous(program, facts.messages, facts.collectives, facts.points)
    cycle = find_cycle(facts.points, edges)
    assert cycle is not None
    return program, waits(edges, cycle)


def test_a_witness_is_a_ring_of_waits_in_words() -> None:
    text = """\
pattern ring(x: float32[4], y: float32[4]):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
"""
    program, ring = deadlock_of(text, 3)
    graph = witness_graph(program, ring)
    assert set(graph) == {(r, 2 * r + i) for r in range(3) for i in range(2)}
    waiting = {((r, 2 * r), ((r + 1) % 3, 2 * ((r + 1) % 3) + 1)): "waits" for r in range(3)}
    behind = {((r, 2 * r + 1), (r, 2 * r)): "behind" for r in range(3)}
    assert {(a, b): d["kind"] for a, b, d in graph.edges(data=True)} == waiting | behind
    assert graph.nodes[1, 3] == {
        "rank": 1,
        "event": 3,
        "operation": "recv",
        "line": 3,
        "column": 5,
        "path": "test.cl",
        "text": "recv(y, src=ranks.prev)",
    }
    assert graph.edges[(0, 0), (1, 3)]["text"] == (
        "rank 0 at test.cl:2:5 `send(x, dst=ranks.next)` waits for "
        "rank 1 at test.cl:3:5 `recv(y, src=ranks.prev)`"
    )
    assert graph.edges[(1, 3), (1, 2)]["text"] == (
        "rank 1 at test.cl:3:5 `recv(y, src=ranks.prev)` comes after "
        "rank 1 at test.cl:2:5 `send(x, dst=ranks.next)`"
    )
    assert len(list(nx.simple_cycles(graph))) == 1


def test_a_witness_through_collectives_and_waits() -> None:
    text = """\
pattern p(x: float32[4], y: float32[4]):
    if rank == 0:
        work = async recv(y, src=1)
        wait(work)
        barrier()
    else:
        barrier()
        send(x, dst=0)
"""
    program, ring = deadlock_of(text, 2)
    graph = witness_graph(program, ring)
    kinds = sorted((d["kind"], a[0], b[0]) for a, b, d in graph.edges(data=True))
    assert kinds == [("behind", 0, 0), ("behind", 1, 1), ("waits", 0, 1), ("waits", 1, 0)]
    operations = {n: graph.nodes[n]["operation"] for n in graph}
    assert operations == {(0, 0): "recv", (0, 2): "barrier", (1, 3): "barrier", (1, 4): "send"}
    assert not nx.is_directed_acyclic_graph(graph)


def test_checking_a_program_imports_no_networkx() -> None:
    code = """\
import sys
import commlang.checks, commlang.program.steps
from commlang.checks import check_program
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
module = load_module(Source("pattern p(x: float32[4]):\\n    all_reduce(x)\\n"))
assert check_program(build(module.symbols["p"], 4)) == []
print(sorted({"networkx", "scipy", "torch", "pydantic"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


# ------------------------------------------------------------------ the documentation


def test_the_examples_of_the_documentation_print_what_they_show(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (ROOT / "docs/graph.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```)?", text, re.M | re.S)
    assert len(blocks) >= 3
    names: dict[str, Any] = {}
    for code, shown in blocks:
        exec(compile(code, "docs/graph.md", "exec"), names)
        assert capsys.readouterr().out == shown, code
