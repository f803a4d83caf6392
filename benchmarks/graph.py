"""What the dependency graph of ten million events costs: to make, to read first, to walk.

    python benchmarks/graph.py > benchmarks/graph.txt

The pattern is the library's ring all-reduce at 1,415 ranks, 10 million events. Making the graph
computes nothing; the first node count finds the program points, the first adjacency read builds
the compressed rows. Walking is NetworkX's own topological sort, here of 200,000 events, against
the same sort on an ordinary DiGraph made from the same graph.
"""

from __future__ import annotations

import os
import platform
import resource
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx

from commlang.program import build
from commlang.program.steps import step_graph
from commlang.resolve.modules import load_module
from commlang.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program import Program

RING = Path(__file__).parents[1] / "patterns/point_to_point/ring_all_reduce.cl"
WORLD, SMALL = 1415, 201


def ring(world: int) -> Program:
    module = load_module(Source.read(RING))
    return build(module.symbols["ring_all_reduce"], world)


def timed(what: str, call: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = call()
    print(f"{what:<62} {1000 * (time.perf_counter() - start):>12,.2f} ms")
    return result


def sort_all(graph: nx.DiGraph[Any]) -> None:
    deque(nx.topological_sort(graph), maxlen=0)


def main() -> None:
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"Python {platform.python_version()}, NetworkX {nx.__version__}, {cores} cores;")
    print(f"load {load:.1f} at the start: other work shared the cores unless it is near 0\n")
    first_reads()
    walk()


def first_reads() -> None:
    program = timed("expand and assemble", lambda: ring(WORLD))
    print(f"  {len(program):,} events on {program.world:,} ranks")
    graph = timed("graph()", program.graph)
    middle = len(program)
    timed("attributes of one event, first read", lambda: dict(graph.nodes[middle]))
    timed("number of nodes, first read (finds the program points)", lambda: len(graph))
    timed("successors of one node, first read (builds the rows)", lambda: graph.succ[middle])
    timed("successors of one node, later", lambda: list(graph.successors(middle)))
    timed("predecessors of one node, first read", lambda: list(graph.predecessors(middle)))
    timed("a subgraph of 1,000 events, and its edges", lambda: part(graph, 1000))
    print(f"  {len(graph):,} nodes, {graph.number_of_edges():,} edges")
    steps = timed("step graph", lambda: step_graph(program))
    print(f"  {len(steps):,} steps and joins, {steps.number_of_edges():,} edges")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"  {peak / 1024**2:.1f} GiB at most, the program included\n")


def part(graph: nx.DiGraph[Any], events: int) -> int:
    return graph.subgraph(range(2 * events)).number_of_edges()


def walk() -> None:
    program = ring(SMALL)
    graph = program.graph()
    print(f"{len(program):,} events, {len(graph):,} nodes, {graph.number_of_edges():,} edges")
    timed("topological sort of the lazy graph", lambda: sort_all(graph))
    ordinary = timed("an ordinary DiGraph of it", lambda: nx.DiGraph(graph))
    timed("topological sort of the ordinary one", lambda: sort_all(ordinary))


if __name__ == "__main__":
    main()
