"""From problems to their roots: who waits for whom, and who waits for no one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.explain.problems import MISMATCH, MISSING, STALE
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def find_roots(problems: Sequence[Problem]) -> list[Root]:
    """The roots of all problems, the one that holds up most ranks first.

    A rank with a call that has not ended is held up by it. So a rank that others wait for is a
    root only if nothing holds it up.
    """
    import networkx as nx

    # Nodes are ranks, and ("problem", i) for a problem that is not about ranks that have not come.
    graph: nx.DiGraph[object] = nx.DiGraph()
    for index, problem in enumerate(problems):
        gone = problem.kind in (MISSING, STALE)
        targets: tuple[object, ...] = (("problem", index),)
        if gone:
            targets = problem.absent or problem.unknown or targets
        graph.add_nodes_from(targets)
        for rank in problem.waiting:
            graph.add_edges_from((rank, target) for target in targets)
    found: dict[tuple[object, ...], Root] = {}
    for component in nx.strongly_connected_components(graph):
        if any(after not in component for node in component for after in graph.successors(node)):
            continue
        root = _root(graph, component, problems)
        found[(root.kind, root.problems[0].group, root.problems[0].number, *root.ranks)] = root
    return _ordered(_merged(list(found.values())))


def _root(graph: nx.DiGraph[object], component: set[object], problems: Sequence[Problem]) -> Root:
    import networkx as nx

    before = {n for node in component for n in nx.ancestors(graph, node)}
    waiting = tuple(sorted(n for n in before - component if isinstance(n, int)))
    (first, *_) = component
    if isinstance(first, tuple):
        problem = problems[first[1]]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType, reportArgumentType, reportCallIssue]
        own, ranks = [problem], _odd(problem)
    else:
        ranks = tuple(sorted(node for node in component if isinstance(node, int)))
        own = [p for p in problems if set(p.absent or p.unknown) & component]
        if len(component) > 1:
            own = [p for p in own if set(p.waiting) & component]
        # First the one in which nobody else is waited for, then that of most ranks.
        own.sort(key=lambda p: (bool(set(p.absent) - component), -len(p.waiting)))
    later = [p for p in problems if p not in own and set(p.waiting) & before]
    kind = CYCLE if len(component) > 1 else own[0].kind
    return Root(kind, ranks, waiting, (*own, *later))


def _odd(problem: Problem) -> tuple[int, ...]:
    from commlang.explain.agree import odd_ones

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
