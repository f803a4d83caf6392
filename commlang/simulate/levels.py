"""The engine without contention, level by level on arrays: numpy alone, for broad programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from commlang.program.sorting import distinct
from commlang.simulate.wiring import CALL, LOCAL, RECV, SEND

if TYPE_CHECKING:
    from commlang.program.columns import Array
    from commlang.simulate.kernel import Clock, Costs
    from commlang.simulate.wiring import Wiring

_TRIAL = 500
"""Levels after which it is looked at how broad they are."""
_NARROW = 60
"""Rows of a level below which the kernel is faster on lists."""
_Reached: TypeAlias = "tuple[Array, Array]"
"""Points at which something ends, and when."""


def by_levels(wiring: Wiring, costs: Costs) -> Clock | None:
    """The clock of a program without eager messages; None if its levels are too narrow."""
    return _Levels(wiring, costs).clock_of_all()


class _Levels:
    def __init__(self, wiring: Wiring, costs: Costs) -> None:
        from commlang.simulate.run import blank

        self.wiring, self.costs, self.clock = wiring, costs, blank(wiring)
        self.pending = wiring.pending.copy()
        self.waiting = np.diff(wiring.first)
        self.offset, self.issued = _offsets(wiring, costs)
        none = np.zeros(0, dtype=np.int64)
        self.messages, self.calls = none, none
        """Those that only wait for the one before them."""

    def clock_of_all(self) -> Clock | None:
        front = np.flatnonzero(self.pending == 0)
        done = level = 0
        while len(front) or len(self.messages) or len(self.calls):
            rows = self._starting(front)
            done, level = done + len(rows), level + 1
            if level == _TRIAL and done < _TRIAL * _NARROW:
                return None
            left = len(self.messages), len(self.calls)
            front = self._advance(rows)
            if not len(rows) and left == (len(self.messages), len(self.calls)):
                break  # nothing will ever happen again
        self._bind()
        return self.clock

    def _starting(self, front: Array) -> Array:
        """The rows that start at some points."""
        low, high = self.wiring.pointer[front], self.wiring.pointer[front + 1]
        sizes = high - low
        ends = np.cumsum(sizes)
        place = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(
            low - (ends - sizes), sizes
        )
        return self.wiring.order[place] if len(self.wiring.order) else place

    def _advance(self, rows: Array) -> Array:
        """Start rows, end what can end, and return the points that are then reached."""
        wiring, clock = self.wiring, self.clock
        begin = clock.point[wiring.start[rows]] + self.offset[rows]
        clock.begin[rows] = begin
        role, link = wiring.role[rows], wiring.link[rows]
        local = role == LOCAL
        reached = [self._close(rows[local], begin[local] + self.costs.work[rows[local]])]
        later = rows[wiring.after[rows] >= 0]
        issue = clock.begin[later] + self.issued[later]
        reached.append((wiring.after[later], issue))
        reached += self._move(link[~local & (role != CALL)])
        reached += self._meet(rows[role == CALL], link[role == CALL])
        # numpy is fast at repeated indices only if they are of its own type, and so are the values.
        points = np.concatenate([points for points, _ in reached]).astype(np.intp)
        np.maximum.at(clock.point, points, np.concatenate([time for _, time in reached]))
        np.subtract.at(self.pending, points, np.ones(len(points), dtype=np.int32))
        return distinct(points[self.pending[points] == 0])

    def _move(self, met: Array) -> list[_Reached]:
        wiring, clock, costs = self.wiring, self.clock, self.costs
        m = distinct(np.concatenate([met, self.messages]))
        both = np.maximum(clock.begin[wiring.send[m]], clock.begin[wiring.recv[m]])
        m, both = m[both == both], both[both == both]  # a NaN is not equal to itself
        before = np.where(wiring.queued[m], m - 1, m)
        room = np.where(
            wiring.queued[m], clock.moved[before] + costs.occupy[costs.lot[before]], both
        )
        blocked = room != room
        self.messages = m[blocked]
        m, time = m[~blocked], np.maximum(both, room)[~blocked]
        clock.moved[m] = time
        lot = costs.lot[m]
        time = time + costs.flight[lot]
        sent = self._close(wiring.send[m], time)
        return [sent, self._close(wiring.recv[m], time + costs.receipt[lot])]

    def _meet(self, rows: Array, calls: Array) -> list[_Reached]:
        wiring, clock = self.wiring, self.clock
        if not len(rows) and not len(self.calls):
            return []
        np.maximum.at(clock.met, calls, clock.begin[rows])
        np.subtract.at(self.waiting, calls, 1)
        c = distinct(np.concatenate([calls[self.waiting[calls] == 0], self.calls]))
        before = wiring.before[c]
        over = (
            clock.end[wiring.member[wiring.first[np.maximum(before, 0)]]]
            if len(c)
            else clock.met[c]
        )
        over = np.where(before >= 0, over, 0.0)
        blocked = over != over
        self.calls = c[blocked]
        c = c[~blocked]
        clock.met[c] = np.maximum(clock.met[c], over[~blocked])
        low, size = wiring.first[c], wiring.first[c + 1] - wiring.first[c]
        ends = np.cumsum(size)
        place = np.arange(int(size.sum())) + np.repeat(low - (ends - size), size)
        time = np.repeat(clock.met[c] + self.costs.seconds[c], size)
        return [self._close(wiring.member[place], time)]

    def _close(self, rows: Array, time: Array) -> _Reached:
        """The points at which rows end, and when."""
        self.clock.end[rows] = time
        end = self.wiring.end[rows]
        if (end < 0).any():
            end, time = end[end >= 0], time[end >= 0]
        return end, time

    def _bind(self) -> None:
        """Which row reached each point last."""
        wiring, clock = self.wiring, self.clock
        clock.binder[:] = len(wiring.start)
        issue = clock.begin + self.issued
        for column, time in ((wiring.end, clock.end), (wiring.after, issue)):
            if (column < 0).all():
                continue
            last = (time == clock.point[column]) & (column >= 0)
            rows = np.flatnonzero(last)[::-1].astype(np.int32)
            points = column[rows]
            first = np.full(len(clock.binder), len(wiring.start), dtype=np.int32)
            first[points] = rows  # of several rows the one assigned last stays: the first
            np.minimum(clock.binder, first, out=clock.binder)
        clock.binder[clock.binder == len(wiring.start)] = -1


def _offsets(wiring: Wiring, costs: Costs) -> tuple[Array, Array]:
    """Per row, how long the rows before it at its point keep the processor, and how long it does.

    Recvs and calls are posted at once. Sums are made in the order of the rows, one place after the
    other, as the kernel makes them.
    """
    issued = costs.work.copy()
    sends = np.flatnonzero(wiring.role == SEND)
    issued[sends] = costs.issue[costs.lot[wiring.link[sends]]]
    offset = np.zeros(len(issued))
    sizes = np.diff(wiring.pointer)
    left = np.flatnonzero(sizes > 1)
    for place in range(1, int(sizes.max(initial=0))):
        left = left[sizes[left] > place]
        at = wiring.pointer[left] + place
        row, last = (wiring.order[at], wiring.order[at - 1]) if len(wiring.order) else (at, at - 1)
        offset[row] = offset[last] + issued[last]
    offset[(wiring.role == RECV) | (wiring.role == CALL)] = 0.0
    return offset, issued
