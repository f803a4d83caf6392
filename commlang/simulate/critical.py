"""The critical path: from what ended last back to the start, always to what was waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.records import record
from commlang.simulate.wiring import CALL, LOCAL, RECV, SEND

if TYPE_CHECKING:
    from commlang.program.columns import Array
    from commlang.simulate.kernel import Clock, Costs
    from commlang.simulate.wiring import Wiring


@record
class Path:
    """Rows of the critical path in the order of time, and the seconds that each accounts for.

    The seconds add up to the makespan. `origin` is the row with whose issue that of `row` began: of
    a message or a call that waited for another rank, the row there.
    """

    row: Array
    seconds: Array
    origin: Array


def critical_path(wiring: Wiring, costs: Costs, clock: Clock, *, fast: bool) -> Path:
    """The path that ends with what ends last, of several that of the first row."""
    if not len(wiring.start):
        none = np.zeros(0, dtype=np.int64)
        return Path(none, np.zeros(0), none)
    walk: Any = trace
    if fast:
        from commlang.simulate.compiled import compiled

        walk = compiled(trace)
    last = int(wiring.last[np.argmax(clock.point[wiring.last])])
    row, time = int(clock.binder[last]), float(clock.point[last])
    alone = np.flatnonzero(wiring.end < 0)  # rows that nobody waits for
    ends = np.nan_to_num(clock.end[alone], nan=0.0)
    if ends.max(initial=0.0) > time:
        at = int(np.argmax(ends))
        row, last, time = int(alone[at]), -1, float(ends[at])
    found, seconds, origin = walk(row, last, time, wiring, costs, clock)
    return Path(found[::-1], seconds[::-1], origin[::-1])


def trace(  # noqa: C901
    row: int, p: int, time: float, wiring: Any, costs: Any, clock: Any
) -> tuple[Array, Array, Array]:
    """Back from `row`, which happened at `time` and by which point `p` was reached."""
    start, after, role, link = wiring.start, wiring.after, wiring.role, wiring.link
    pointer, order = wiring.pointer, wiring.order
    send, recv, queued = wiring.send, wiring.recv, wiring.queued
    member, first, before = wiring.member, wiring.first, wiring.before
    eager, lot = costs.eager, costs.lot
    point, binder, begin, end = clock.point, clock.binder, clock.begin, clock.end
    moved, met = clock.moved, clock.met
    rows, seconds, origins = [row], [0.0], [row]
    flat, kept = len(order) == 0, False  # whether the row kept the processor from the one after
    while row >= 0:
        origin, previous = row + 0, -1
        number = link[row] + 0
        issued = kept or (p >= 0 and after[row] == p and time < end[row])
        if role[row] == LOCAL or issued:
            pass
        elif role[row] == CALL:
            if begin[row] < met[number]:
                last = before[number]
                if last >= 0 and end[member[first[last]]] == met[number]:
                    previous = member[first[last]] + 0
                for i in range(first[number], first[number + 1]):
                    if begin[member[i]] == met[number]:
                        origin, previous = member[i] + 0, -1
                        break
        else:
            ahead = len(eager) > 0 and eager[lot[number]]
            other = recv[number] + 0 if role[row] == SEND else send[number] + 0
            if ahead:  # only an eager message's recv waits, and only until it has arrived
                waited = role[row] == RECV and begin[row] + costs.receipt[lot[number]] < time
            else:
                waited = begin[row] < moved[number]
            if waited and begin[other] == moved[number]:
                origin = other
            elif waited and queued[number]:
                previous = send[number - 1] + 0
        busy, until = -1, point[start[origin]]
        if previous >= 0:
            until = met[number] if role[row] == CALL else moved[number]
        elif begin[origin] > until and (role[origin] == LOCAL or role[origin] == SEND):
            # What starts at one point takes turns on the processor, in this order.
            low, high = pointer[start[origin]] + 0, pointer[start[origin] + 1] + 0
            first_of = low
            while low < high:
                middle = (low + high) // 2
                if (middle if flat else order[middle]) < origin:
                    low = middle + 1
                else:
                    high = middle
            while busy < 0 and low > first_of:
                low -= 1
                turn = low if flat else order[low] + 0
                if (role[turn] == LOCAL or role[turn] == SEND) and begin[turn] < begin[origin]:
                    busy, until = turn, begin[origin]
        rows.append(row)
        seconds.append(time - until)
        origins.append(origin)
        time, kept = until, busy >= 0
        if kept:
            row, p = busy, -1
        elif previous >= 0:
            row, p = previous, -1
        else:
            p = start[origin] + 0
            row = binder[p] + 0
    return np.array(rows)[1:], np.array(seconds)[1:], np.array(origins)[1:]
