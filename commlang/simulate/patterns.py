"""Algorithms on the links of a machine: what each costs, and which channels it keeps.

Groups that have no rank in common are worked out together, since a mesh has thousands of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.errors import UsageError
from commlang.operations import Kind
from commlang.records import record
from commlang.simulate.algorithms import ALGORITHMS, HIERARCHICAL, Step, hierarchical
from commlang.simulate.messages import Pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.program.columns import Array
    from commlang.topology import Machine


@record
class Pattern:
    """One way to do a collective in one group: alpha + beta N + root sqrt(N) seconds.

    It keeps `resource` for `share` N seconds each and sends `load` N bytes through each.
    """

    algorithm: str
    alpha: float
    beta: float
    root: float
    resource: Array
    share: Array
    load: Array

    def seconds(self, size: Array) -> Array:
        """The time of calls of so many bytes."""
        return self.alpha + self.beta * size + self.root * np.sqrt(size)

    def shared(self, size: Array) -> Array:
        """The time when its own messages share links as well."""
        return np.maximum(self.seconds(size), self.alpha + float(self.share.max(initial=0)) * size)


def unshared(algorithm: str) -> Pattern:
    """A pattern that takes no time and no channels."""
    none = np.zeros(0)
    return Pattern(algorithm, 0.0, 0.0, 0.0, np.zeros(0, dtype=np.int64), none, none)


def options(
    machine: Machine, kind: Kind, table: Array, root: int, wanted: str | None
) -> list[list[Pattern]]:
    """For each group (a row of `table`) the algorithms of a kind, or the one that is wanted.

    `root` is the root's place in every group. Raises UsageError if the wanted one does not fit.
    """
    found: list[list[Pattern]] = [[] for _ in table]
    if table.shape[1] == 1:
        return [[unshared("alone")] for _ in table]
    for name, algorithm in ALGORITHMS[kind].items():
        if wanted in (None, name):
            for listed, one in zip(
                found, _patterns(machine, name, algorithm(table, root), table), strict=True
            ):
                listed.append(one)
    if kind is Kind.ALL_REDUCE and wanted in (None, HIERARCHICAL):
        for listed, members in zip(found, table, strict=True):
            listed += _by_nodes(machine, members, required=bool(wanted))
    return found


def _by_nodes(machine: Machine, members: Array, *, required: bool) -> Iterator[Pattern]:
    nodes = nodes_of(machine, members)
    if nodes is not None:
        for between in ALGORITHMS[Kind.ALL_REDUCE].values():
            steps = hierarchical(nodes, between)
            yield from _patterns(machine, HIERARCHICAL, steps, members[None])
    elif required:
        raise UsageError(
            f"algorithm all_reduce={HIERARCHICAL}: on {machine.name} the {len(members)} ranks "
            "of a group are not spread evenly over several nodes of several ranks"
        )


def nodes_of(machine: Machine, members: Array) -> Array | None:
    """Members by node (nodes, members of each), at the innermost level that parts them evenly."""
    inside = 1
    for level in machine.levels[:-1]:
        inside *= level.count
        node = members // inside
        values, counts = np.unique(node, return_counts=True)
        if len(values) > 1 and counts[0] > 1 and (counts == counts[0]).all():
            return members[np.argsort(node, kind="stable")].reshape(len(values), -1)
    return None


def _patterns(machine: Machine, name: str, steps: list[Step], table: Array) -> list[Pattern]:
    """Sum the steps up, and what they send through each channel; one pattern for each group."""
    groups = len(table)
    owner = np.zeros(int(table.max()) + 1, dtype=np.int64)
    owner[table] = np.arange(groups)[:, None]
    alpha, beta, root, overhead = np.zeros((4, groups))
    keys, loads = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    channels = len(machine.capacities)
    for step in steps:
        pairs, group = Pairs.of(machine, step.src, step.dst), owner[step.src]
        latency, pace, most = (
            _most(column, group, groups) for column in (pairs.latency, pairs.pace, pairs.overhead)
        )
        overhead = np.maximum(overhead, most)
        alpha, beta = alpha + step.rounds * latency, beta + step.serial * pace
        root = root + 2 * np.sqrt(max(step.stages, 0) * latency * pace)
        if step.each:
            alpha = alpha + _busiest(step, pairs.gap * step.weight, table)
            beta = beta + _busiest(step, pairs.pace * step.part, table)
        passed = np.diff(pairs.pointer)
        keys.append(np.repeat(group, passed) * channels + pairs.resource)
        loads.append(np.full(len(pairs.resource), step.part))
    key, number = np.unique(np.concatenate(keys), return_inverse=True)
    load = np.bincount(number.ravel(), np.concatenate(loads), len(key))
    resource = key % channels
    share = load / machine.capacities[resource]
    bounds = np.searchsorted(key, np.arange(groups + 1) * channels).tolist()
    return [
        Pattern(name, *figures, *(column[low:high] for column in (resource, share, load)))
        for *figures, low, high in zip(
            *(column.tolist() for column in (alpha + 2 * overhead, beta, root)),
            bounds[:-1],
            bounds[1:],
            strict=True,
        )
    ]


def _most(values: Array, group: Array, groups: int) -> Array:
    """The largest value of each group, 0 for none."""
    found = np.zeros(groups)
    np.maximum.at(found, group, values)
    return found


def _busiest(step: Step, values: Array, table: Array) -> Array:
    """Per group the largest sum that one rank sends, or that one receives."""
    size = int(table.max()) + 1
    sums = (np.bincount(end, values, size)[table].max(axis=1) for end in (step.src, step.dst))
    return np.maximum(*sums)
