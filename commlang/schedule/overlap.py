"""Overlap: operations start as early, and are waited for as late, as their data allow.

The order in which a rank starts its communication stays that of the program, which is one order on
all ranks of a group. An operation is started ahead of local work that it has nothing to do with,
and joined right before the first event that touches its data, or at the end. So no wait stands
before a start that it did not stand before in the program: every constraint of the new order
follows from those of the old, and what was free of deadlock remains so. (The checker is asked all
the same.)

`by_group` has the operations of one group in flight at a time: what transports with a queue for
each group, as NCCL's streams are, can never lock up on. Operations then end before one of another
group starts.

A `parallel:` is one unit, which ends before the next begins. Barriers, and compute and externs that
name no data, keep their place among everything else: only what the program itself has in flight
across them stays so.
"""

from __future__ import annotations

from collections import deque
from itertools import groupby, islice
from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.points import top_unit
from commlang.program.regions import Regions
from commlang.records import record
from commlang.schedule.rebuild import Join, rebuilt

if TYPE_CHECKING:
    from commlang.program import Program

MOST = 500_000
"""Events up to which the pass is worth its time, some 5 microseconds for each."""
AHEAD = 64
"""Units of local work that an operation is started ahead of, at most."""


def unfit(program: Program) -> str | None:
    """Why `overlap` is not for a program of all ranks, if it is not."""
    if len(program.nests.key):
        return "a `parallel:` has sequences in it"
    if len(program) > MOST:
        return f"{len(program):,} events are more than the pass is made for ({MOST:,})"
    return None


def overlap(program: Program, *, by_group: bool = False) -> Program:
    """The program with its waits moved, for the ranks that it has, of one that is not `unfit`.

    What a rank gets does not depend on which other ranks the program has.
    """
    regions = Regions(program)
    orders = [_order(program, _units(regions, int(rank)), by_group) for rank in program.ranks]
    return rebuilt(program, orders)


@record
class _Span:
    """Elements `low` to `high` of a piece of memory."""

    memory: int
    low: int
    high: int
    writes: bool

    def meets(self, other: _Span) -> bool:
        """Whether the order of the two matters."""
        if self.memory != other.memory or not (self.writes or other.writes):
            return False
        return self.low < other.high and other.low < self.high


@record
class _Unit:
    """What is started at once: an event, or a block. Nothing passes a fence."""

    rows: tuple[int, ...]
    spans: tuple[_Span, ...]
    groups: frozenset[int]
    local: bool
    fence: bool
    block: bool
    until: int
    """The row at which the program waits for it."""

    def meets(self, other: _Unit) -> bool:
        """Whether the order of the two matters."""
        return self.fence or other.fence or self._shares(other)

    def awaits(self, flying: _Unit) -> bool:
        """Whether it must not begin before what has been started has ended."""
        if self.fence and self.rows[0] < flying.until:
            return self._shares(flying)
        return self.meets(flying)

    def _shares(self, other: _Unit) -> bool:
        return any(mine.meets(theirs) for mine in self.spans for theirs in other.spans)


def _order(program: Program, units: list[_Unit], by_group: bool) -> list[int | Join]:
    """Rows of one rank and joins, in the order in which the host comes to them."""
    talk = deque(unit for unit in units if not unit.local)
    work = deque(unit for unit in units if unit.local)
    flying: dict[int, _Unit] = {}
    order: list[int | Join] = []
    while talk or work:
        if talk and _free(talk[0], work, flying):
            unit = talk.popleft()
        else:
            queue = min((q for q in (talk, work) if q), key=lambda q: q[0].rows[0])
            unit = queue.popleft()
            needed = tuple(row for row, other in flying.items() if unit.awaits(other))
            _join(needed, flying, order)
        if by_group and not unit.local:
            _join(tuple(r for r, o in flying.items() if o.groups != unit.groups), flying, order)
        order += unit.rows
        if not (unit.local or unit.block or unit.fence):
            flying[unit.rows[0]] = unit
    _join(tuple(flying), flying, order)
    return [item for at, item in enumerate(order) if not _at_once(program, order, at)]


def _at_once(program: Program, order: list[int | Join], at: int) -> bool:
    """Whether a join follows what it joins, which then need not be started apart."""
    item, before = order[at], order[at - 1]
    if not isinstance(item, Join) or isinstance(before, Join) or item.rows != (before,):
        return False
    return not program.site_of(before).asynchronous


def _free(unit: _Unit, work: deque[_Unit], flying: dict[int, _Unit]) -> bool:
    """Whether an operation may start with local work before it still to be done."""
    before = list(islice(work, AHEAD + 1))
    passed = [other for other in before if other.rows[0] < unit.rows[0]]
    if len(passed) > AHEAD:
        return False
    return not any(unit.meets(other) for other in (*passed, *flying.values()))


def _join(rows: tuple[int, ...], flying: dict[int, _Unit], order: list[int | Join]) -> None:
    if rows:
        order.append(Join(rows))
    for row in rows:
        del flying[row]


def _units(regions: Regions, rank: int) -> list[_Unit]:
    """The units of a rank in program order; waits are left out, since they are placed anew."""
    program = regions.program
    rows = program.rows_of(rank)
    every = np.arange(rows.start, rows.stop)
    spans = _spans(regions, every)
    kind, group = program.kind[every].tolist(), program.group[every].tolist()
    unit = top_unit(program, every).tolist()
    nest = program.nest[every].tolist()
    wait = program.wait[every].tolist()
    found: list[_Unit] = []
    for _, members in groupby(range(len(every)), key=unit.__getitem__):
        block = [at for at in members if kind[at] != Kind.WAIT]
        if not block:
            continue
        touched = tuple(span for at in block for span in spans.get(rows.start + at, ()))
        kinds = {kind[at] for at in block}
        local = all(Kind(k).is_local for k in kinds)
        told = bool(touched) or not kinds & {Kind.COMPUTE, Kind.EXTERN}
        inside = nest[block[0]] >= 0
        found.append(
            _Unit(
                tuple(rows.start + at for at in block),
                touched,
                frozenset(group[at] for at in block),
                local,
                Kind.BARRIER in kinds or not told,
                inside,
                wait[block[0]],
            )
        )
    return found


def _spans(regions: Regions, rows: np.ndarray) -> dict[int, tuple[_Span, ...]]:
    """What each row touches, by the memory that iterations share."""
    touches = regions.touches(rows)
    memory = _memory(regions.program, touches.buffer)
    columns = (touches.row, memory, touches.low, touches.high, touches.writes)
    entries = zip(*(column.tolist() for column in columns), strict=True)
    found: dict[int, list[_Span]] = {}
    for row, piece, low, high, writes in entries:
        found.setdefault(row, []).append(_Span(piece, low, high, writes))
    return {row: tuple(spans) for row, spans in found.items()}


def _memory(program: Program, buffer: np.ndarray) -> np.ndarray:
    """The memory of each buffer: of a temp, all iterations have the same unless side by side."""
    block = np.searchsorted(program.buffer_base, buffer, side="right") - 1
    shared = [b.scope is not None and not b.distinct for b in program.buffers]
    storage = np.array([-1 - b.storage for b in program.buffers], dtype=np.int64)
    return np.where(np.array(shared, dtype=np.bool_)[block], storage[block], buffer)
