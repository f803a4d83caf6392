"""One thread per rank: the host's actions in an order that cannot block for ever.

Outside of `parallel:` the order is that of the program. A `parallel:` whose children are single
operations starts them all, then joins them; one that a pass made of asynchronous messages is
started whole and joined where each of them is. One with sequences needs care, since a host that
waits cannot start what another branch would start next: its starts and joins are put in the order
of the levels of the whole program's points. A join at level l only needs starts at lower levels,
and every rank walks its levels upwards, so that whatever a join waits for is started.
"""

from __future__ import annotations

from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.constraints import rendezvous
from commlang.program.cycles import point_levels
from commlang.program.matching import match_collectives, match_messages
from commlang.program.points import find_points
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlang.program import Program
    from commlang.program.columns import Array


class Act(Enum):
    """What the host does: run to the end, start, join, or a batch of all three at once."""

    RUN = "run"
    START = "start"
    JOIN = "join"
    BATCH = "batch"


@record
class Action:
    """One step of a rank's host, on rows of its program.

    A JOIN lists the rows that it joins, perhaps none; `row` is where the text says so.
    """

    act: Act
    row: int
    rows: tuple[int, ...] = ()


def linearise(program: Program, rank: int, whole: Callable[[], Program]) -> list[Action]:
    """The actions of one rank; `whole` expands the program of all ranks, if it is needed."""
    rows = program.rows_of(rank)
    joined = _joined(program, rows)
    listed = program.nests.look_up(program.nest[rows.start : rows.stop])[0]
    levels = _Levels(whole(), rank) if listed.any() else None
    actions: list[Action] = []
    for nest, members in groupby(rows, key=_outermost(program)):
        if nest < 0:
            actions += [_sequential(program, row, joined) for row in members]
            continue
        block = tuple(members)
        nested = levels is not None and bool(listed[[row - rows.start for row in block]].any())
        if nested and levels is not None:
            actions += levels.order(program, block, joined)
        elif all(program.site_of(row).asynchronous for row in block):
            actions.append(Action(Act.START, block[0], block))
        else:
            actions += _batch(program, block, joined)
    return actions


def _batch(
    program: Program, block: tuple[int, ...], joined: dict[int, tuple[int, ...]]
) -> list[Action]:
    """A block of single operations as one, then what it waits for, which was started before it."""
    waits = [row for row in block if program.site_of(row).kind is Kind.WAIT]
    rest = tuple(row for row in block if row not in waits)
    joins = [Action(Act.JOIN, row, joined.get(row, ())) for row in waits]
    return [*([Action(Act.BATCH, rest[0], rest)] if rest else []), *joins]


def _joined(program: Program, rows: range) -> dict[int, tuple[int, ...]]:
    """For each wait, the rows that it joins."""
    joined: dict[int, list[int]] = {}
    wait = program.wait[rows.start : rows.stop]
    for offset in np.flatnonzero(wait >= 0).tolist():
        joined.setdefault(int(wait[offset]), []).append(rows.start + offset)
    return {wait: tuple(members) for wait, members in joined.items()}


def _outermost(program: Program) -> Callable[[int], int]:
    """The key of the outermost construct around a row, -1 for none."""
    nests = program.nests
    parent = dict(zip(nests.key.tolist(), nests.parent.tolist(), strict=True))

    def outermost(row: int) -> int:
        nest = int(program.nest[row])
        while nest in parent:
            nest = parent[nest]
        return nest

    return outermost


def _sequential(program: Program, row: int, joined: dict[int, tuple[int, ...]]) -> Action:
    site = program.site_of(row)
    if site.kind is Kind.WAIT:
        return Action(Act.JOIN, row, joined.get(row, ()))
    return Action(Act.START if site.asynchronous else Act.RUN, row, (row,))


class _Levels:
    """Levels of the points of the whole program, for the rows of one rank."""

    def __init__(self, whole: Program, rank: int) -> None:
        points = find_points(whole, local=True)
        edges = rendezvous(whole, match_messages(whole), match_collectives(whole), points)
        level = point_levels(points, edges)
        self.rows = whole.rows_of(rank)
        start = points.start[self.rows.start : self.rows.stop]
        end = points.end[self.rows.start : self.rows.stop]
        self.start: Array = level[start]
        self.end: Array = np.where(end >= 0, level[end], -1)

    def order(
        self, program: Program, block: tuple[int, ...], joined: dict[int, tuple[int, ...]]
    ) -> list[Action]:
        """Starts and joins of a block by level; at one level joins come first, then the text."""
        return [action for _, action in sorted(self._moves(program, block, joined), key=_by_level)]

    def _moves(
        self, program: Program, block: tuple[int, ...], joined: dict[int, tuple[int, ...]]
    ) -> Iterator[tuple[tuple[int, int, int], Action]]:
        first = program.rows_of(int(program.rank[block[0]])).start
        for row in block:
            start, end = int(self.start[row - first]), int(self.end[row - first])
            site = program.site_of(row)
            if site.kind is Kind.WAIT:
                yield (end, 0, row), Action(Act.JOIN, row, joined.get(row, ()))
            elif site.kind.is_local:
                yield (start, 1, row), Action(Act.RUN, row, (row,))
            else:
                yield (start, 1, row), Action(Act.START, row, (row,))
                if not site.asynchronous:
                    yield (end, 0, row), Action(Act.JOIN, row, (row,))


def _by_level(move: tuple[tuple[int, int, int], Action]) -> tuple[int, int, int]:
    return move[0]
