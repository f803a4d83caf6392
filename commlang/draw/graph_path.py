"""The critical path of a step graph: the chain of steps that takes longest, or moves most."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from commlang.draw.words import bytes_text, time_text
from commlang.program.sorting import distinct
from commlang.records import entity

if TYPE_CHECKING:
    import networkx as nx

    from commlang.draw.subject import Subject
    from commlang.program import Program
    from commlang.program.columns import Array


@entity
class Path:
    """The nodes and edges on the path, and what it is, in words."""

    nodes: frozenset[int]
    edges: frozenset[tuple[int, int]]
    told: str


def critical_path(subject: Subject, steps: nx.DiGraph[int], fine: Array, unit: Array) -> Path:
    """The critical path, in units, of a graph of finer steps.

    `fine` and `unit` number the rows by both. What a simulation found is taken if it is there;
    else it is the chain of steps with the most seconds, without times with the most bytes.
    """
    program = subject.program
    if subject.critical is not None and len(subject.critical):
        chain = fine[np.asarray(subject.critical, dtype=np.int64)].tolist()
        origin = subject.timings[0].origin if subject.timings else "simulated"
        spent = f"{_makespan(subject)} in " if subject.timings else ""
        told = f"Critical path, {origin}: {spent}{len(set(chain)):,} steps"
    else:
        chain, told = _longest(subject, steps, fine)
    of = _mapping(fine, unit)
    units = [of[key] for key in chain if key in of]
    told += f" of {len(distinct(program.key)):,}." if fine is program.key else "."
    return Path(frozenset(units), frozenset(pairwise(units)), told)


def _makespan(subject: Subject) -> str:
    timing = subject.timings[0]
    return time_text(float(np.nanmax(timing.end) - np.nanmin(timing.start)), "s")


def _mapping(fine: Array, unit: Array) -> dict[int, int]:
    key, at = np.unique(fine, return_index=True)
    return dict(zip(key.tolist(), unit[at].tolist(), strict=True))


def _longest(subject: Subject, steps: nx.DiGraph[int], key: Array) -> tuple[list[int], str]:
    """The heaviest chain along the edges that lead forward; equal ones by how many steps."""
    program = subject.program
    # Without a simulation's path, what was measured says more than any plan.
    timing = subject.timings[-1] if subject.timings else None
    if timing is not None:
        weight = _seconds(key, np.nan_to_num(timing.end - timing.start))
    else:
        weight = _bytes(steps)
    place = _places(program, key, steps)
    best: dict[int, tuple[float, int]] = {}
    before: dict[int, int] = {}
    for node in sorted(steps, key=place.__getitem__):
        into = [one for one in steps.pred[node] if place[one] < place[node]]
        last = max(into, key=best.__getitem__, default=None)
        total, count = best[last] if last is not None else (0.0, 0)
        best[node] = total + weight.get(node, 0.0), count + (node >= 0)
        if last is not None:
            before[node] = last
    end = max(best, key=best.__getitem__, default=None)
    if end is None:
        return [], "Critical path: none"
    total, count = best[end]
    chain = [end]
    while chain[-1] in before:
        chain.append(before[chain[-1]])
    if timing is None:
        told = f"Critical path, by bytes of a rank: {bytes_text(round(total))} in {count:,} steps"
    else:
        # Steps that run beside one another on a path are added up, so it may be longer than a run.
        spent = f"{time_text(total, 's')} with waits and overlaps"
        told = f"Critical path, {timing.origin}: {spent} in {count:,} steps"
    return [node for node in reversed(chain) if node >= 0], told


def _bytes(steps: nx.DiGraph[int]) -> dict[int, float]:
    """The mean bytes of a step's events; a message counts where it is sent."""
    return {
        n: d["bytes"] / d["ranks"]
        for n, d in steps.nodes(data=True)
        if d["kind"] == "step" and d["operation"] != "recv"
    }


def _seconds(key: Array, spent: Array) -> dict[int, float]:
    """The longest time that an event of each step takes."""
    keys, number = np.unique(key, return_inverse=True)
    longest = np.zeros(len(keys))
    np.maximum.at(longest, number.reshape(-1), spent)
    return dict(zip(keys.tolist(), longest.tolist(), strict=True))


def _places(program: Program, key: Array, steps: nx.DiGraph[int]) -> dict[int, float]:
    """Where steps first stand in program order; joins stand before the first that follows."""
    keys, number = np.unique(key, return_inverse=True)
    first = np.full(len(keys), np.iinfo(np.int64).max)
    np.minimum.at(first, number.reshape(-1), program.key)
    found = dict(zip(keys.tolist(), first.astype(float).tolist(), strict=True))
    return {node: found[node] if node >= 0 else found[-1 - node] - 0.5 for node in steps}
