"""Communicators that are in flight on a device together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.program.sorting import distinct
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.program.columns import Array
    from commlang.transports.nccl import Nccl

MOST = 3
"""So many communicators in flight that share ranks are too many."""


@record
class Crowd:
    """A row that is issued while operations on two other communicators of its ranks are open."""

    row: int
    others: tuple[int, int]


def crowds(nccl: Nccl) -> Iterator[Crowd]:
    """For each three communicators that share two or more ranks, the first time all are open."""
    program, issue = nccl.program, nccl.issue
    row = issue.row
    used = distinct(nccl.communicator)
    used = used[used < len(program.groups.entries)]
    points = issue.points
    open_at: dict[int, Array] = {}
    for three in _threes(nccl, used.tolist()):
        for group in three:
            if group not in open_at:
                open_at[group] = _open(points.count, *_spans(nccl, row, group))
        together = open_at[three[0]] & open_at[three[1]] & open_at[three[2]]
        if together.any():
            yield _first(nccl, int(np.flatnonzero(together)[0]), three)


def _threes(nccl: Nccl, used: list[int]) -> Iterator[tuple[int, int, int]]:
    """Groups of which any two have two ranks or more in common."""
    entries = nccl.program.groups.entries
    members = {g: frozenset(entries[g].members) for g in used if len(entries[g].members) > 1}
    by_rank: dict[int, list[int]] = {}
    for group in members:
        for rank in members[group]:
            by_rank.setdefault(rank, []).append(group)
    near: dict[int, set[int]] = {group: set() for group in members}
    for groups in {tuple(g) for g in by_rank.values()}:
        for i, one in enumerate(groups):
            for other in groups[i + 1 :]:
                if other not in near[one] and len(members[one] & members[other]) > 1:
                    near[one].add(other)
    for one, others in near.items():
        for two in sorted(others):
            for three in sorted(others & near[two]):
                yield one, two, three


def _spans(nccl: Nccl, row: Array, group: int) -> tuple[Array, Array]:
    """From which point to which operations on a group's communicator are open."""
    points = nccl.issue.points
    mine = row[nccl.communicator == group]
    start, end = points.start[mine], points.end[mine]
    return start, np.where(end < 0, start + 1, end)


def _open(count: int, start: Array, end: Array) -> Array:
    """Whether an operation is open between each point and the next."""
    change = np.zeros(count + 1, dtype=np.int64)
    np.add.at(change, start, 1)
    np.add.at(change, end, -1)
    return np.cumsum(change)[:-1] > 0


def _first(nccl: Nccl, point: int, three: tuple[int, int, int]) -> Crowd:
    """The last of the three to be issued, and the latest of each of the others before it."""
    row, points = nccl.issue.row, nccl.issue.points
    latest: list[int] = []
    for group in three:
        mine = np.flatnonzero((nccl.communicator == group) & (points.start[row] <= point))
        latest.append(int(mine[-1]))
    last, *others = sorted(latest, reverse=True)
    return Crowd(int(row[last]), (int(row[others[1]]), int(row[others[0]])))
