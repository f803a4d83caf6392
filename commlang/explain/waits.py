"""From problems to their roots: who waits for whom, and who waits for no one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from commlang.explain.agree import odd_ones
from commlang.explain.problems import MISMATCH, MISSING, STALE
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import networkx as nx

    from commlang.explain.problems import Problem

CYCLE = "cycle"


@record
class Root:
    """What holds up the ranks in `waiting`, directly or through others.

    `kind` is that of its problem, or "cycle". `ranks` are those that it comes from, as far as the
    dumps tell: the ones that have not come, that wait in a circle, or whose calls differ.
    `problems` begin with the one that it is, followed by those that come of it.
    """

    kind: str
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    problems: tuple[Problem, ...]


def _networkx() -> Any:
    """Imported here, since it takes a while; its functions have no complete types."""
    return import_module("networkx")


def find_roots(problems: Sequence[Problem]) -> list[Root]:
    """The roots of all problems, the one that holds up most ranks first.

    A rank with a call that has not ended is held up by it. So a rank that others wait for is a
    root only if nothing holds it up.
    """
    # Nodes are ranks, and problems that are not about ranks that have not come.
    graph: nx.DiGraph[Any] = _networkx().DiGraph()
    for problem in problems:
        gone = problem.kind in (MISSING, STALE)
        targets = (problem.absent or problem.unknown) if gone else ()
        graph.add_nodes_from(targets or (problem,))
        for rank in problem.waiting:
            graph.add_edges_from((rank, target) for target in targets or (problem,))
    components: Iterable[set[Any]] = _networkx().strongly_connected_components(graph)
    last = [c for c in components if all(after in c for node in c for after in graph[node])]
    return _ordered(_merged([_root(graph, component, problems) for component in last]))


def _root(graph: nx.DiGraph[Any], component: set[Any], problems: Sequence[Problem]) -> Root:
    ancestors: Callable[..., set[Any]] = _networkx().ancestors
    before = set[Any]().union(*(ancestors(graph, node) for node in component))
    waiting = tuple(sorted(n for n in before - component if isinstance(n, int)))
    (first, *_) = component
    if isinstance(first, int):
        ranks = tuple(sorted(component))
        own = [p for p in problems if set(p.absent or p.unknown) & component]
        if len(component) > 1:
            own = [p for p in own if set(p.waiting) & component]
        # First the one in which nobody else is waited for, then that of most ranks.
        own.sort(key=lambda p: (bool(set(p.absent) - component), -len(p.waiting)))
    else:
        own, ranks = [first], _odd(first)
    later = [p for p in problems if p not in own and set(p.waiting) & before]
    kind = CYCLE if len(component) > 1 else own[0].kind
    return Root(kind, ranks, waiting, (*own, *later))


def _odd(problem: Problem) -> tuple[int, ...]:
    if problem.kind != MISMATCH or problem.values is None:
        return ()
    return odd_ones(problem.values) or tuple(problem.values)


def _merged(roots: list[Root]) -> list[Root]:
    """Ranks that have not come to one call make one root, not several."""
    found: dict[object, Root] = {}
    for root in roots:
        problem = root.problems[0]
        key: object = (problem.group, problem.number, problem.call.is_message, problem.call.source)
        if not root.ranks:
            key = "unlisted"
        if root.kind not in (MISSING, STALE) or key not in found:
            found[key if root.kind in (MISSING, STALE) else id(root)] = root
            continue
        other = found[key]
        found[key] = Root(
            root.kind,
            tuple(sorted({*other.ranks, *root.ranks})),
            tuple(sorted({*other.waiting, *root.waiting})),
            tuple(dict.fromkeys((*other.problems, *root.problems))),
        )
    return list(found.values())


def _ordered(roots: list[Root]) -> list[Root]:
    return sorted(roots, key=lambda r: (not r.ranks, -len(r.waiting), r.kind != MISMATCH, r.ranks))
