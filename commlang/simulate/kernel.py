"""The engine: each point, row, message and call once, as soon as what it waits for is known.

`walk` is plain Python over anything that can be indexed. numba compiles it for arrays; without
numba it runs on lists, which are several times faster than arrays there. All durations come ready
made, so that times are sums and maxima of the same numbers in the same order, whoever computes
them: `levels.py` and both forms of this file agree to the last digit.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

from commlang.simulate.wiring import CALL, LOCAL, SEND

if TYPE_CHECKING:
    from commlang.program.columns import Array


class Costs(NamedTuple):
    """How long everything takes, in seconds.

    Per row `work`, the time of a local row, else 0. Per message `lot`, the number of those that
    cost the same. Per lot `issue`, for which the sender's processor is busy; `flight`, from when a
    message may move until it is delivered; `receipt`, for which the receiver's processor is then
    busy; `occupy`, after which the next of its channel may move; `eager`, whether it leaves without
    its recv (empty: none does). Per call `seconds`.
    """

    work: Array
    lot: Array
    issue: Array
    flight: Array
    receipt: Array
    occupy: Array
    eager: Array
    seconds: Array


class Sharing(NamedTuple):
    """What messages and calls occupy, first come first served; not looked at unless `on`.

    The head of a message of lot m passes the resources `hop[at[r] : at[r + 1]]` of its route r,
    fewer than `width`, and keeps each for `gap[m] + body[m] * pace[resource]` seconds. Call c keeps
    the resources `used[uses[p] : uses[p + 1]]` of its pattern p for `share * volume[c]` seconds
    each, and ends no sooner than `tail[c]` seconds after them.
    """

    on: bool
    width: int
    route: Array
    at: Array
    hop: Array
    gap: Array
    body: Array
    pace: Array
    pattern: Array
    uses: Array
    used: Array
    share: Array
    volume: Array
    tail: Array


class Clock(NamedTuple):
    """What the engine finds; in seconds, NaN for what never happens.

    `point` per point, and `binder`, the row that reached it last (the first of those); `begin` and
    `end` per row; `moved` per message and `met` per call, when it could begin.
    """

    point: Array
    binder: Array
    begin: Array
    end: Array
    moved: Array
    met: Array


class State(NamedTuple):
    """Work in progress: `pending` is what each point still waits for, `waiting` what each call.

    `ready` is a stack of points that have been reached, `happened` one of rows that have ended (or
    -1 - row, which have been issued); `free` tells when each resource is, `delay` how long each
    message has waited for some, `landed` when each eager one arrived.
    """

    pending: Array
    waiting: Array
    ready: Array
    happened: Array
    free: Array
    delay: Array
    landed: Array


# One function, for numba hands tuples of arrays to another at a hundred times the cost of its work.
def walk(wiring: Any, costs: Any, sharing: Any, clock: Any, state: Any) -> None:  # noqa: C901
    """Fill the clock: from the points that nothing keeps, on to the last.

    Each turn takes one step: the next row of a point that has been reached, else the next such
    point, else the earliest of what is queued for resources. Nothing that is queued later can be
    earlier: it follows from what is taken, and durations are not negative. Of equal times that of
    the first row is taken.
    """
    pointer, order, end, after = wiring.pointer, wiring.order, wiring.end, wiring.after
    role, link, send, recv = wiring.role, wiring.link, wiring.send, wiring.recv
    queued, member, first, before = wiring.queued, wiring.member, wiring.first, wiring.before
    work, issue, flight, receipt = costs.work, costs.issue, costs.flight, costs.receipt
    lot, occupy, eager, seconds = costs.lot, costs.occupy, costs.eager, costs.seconds
    on, width, route, at, hops = sharing.on, sharing.width, sharing.route, sharing.at, sharing.hop
    gap, body, pace, pattern = sharing.gap, sharing.body, sharing.pace, sharing.pattern
    uses, used, share, tail = sharing.uses, sharing.used, sharing.share, sharing.tail
    volume, moved, met = sharing.volume, clock.moved, clock.met
    point, binder, begin, ended = clock.point, clock.binder, clock.begin, clock.end
    pending, waiting, ready, happened = state.pending, state.waiting, state.ready, state.happened
    free, delay, landed = state.free, state.delay, state.landed
    flat, any_eager = len(order) == 0, len(eager) > 0
    top = 0
    for p in range(len(pending)):
        if pending[p] == 0:
            ready[top] = p
            top += 1
    queue = [(0.0, 0)]  # time, row * width + hop
    queue.pop()  # numba takes the type of a list from what has been in it
    k, stop, base, taken = 0, 0, 0.0, 0.0
    while True:
        # What this step brings about: a message that moves or lands, a call that ends, at `time`.
        count, mover, lander, call, time = 0, -1, -1, -1, 0.0
        if k < stop:
            row = k if flat else order[k]
            k += 1
            kind, number = role[row], link[row] + 0
            # Sends and local work share the rank's processor; the rest is posted at once.
            now = base + taken if kind in (LOCAL, SEND) else base
            begin[row] = now
            if after[row] >= 0:
                happened[0] = -1 - row
                count = 1
            if kind == LOCAL:
                taken += work[row]
                ended[row] = now + work[row]
                happened[count] = row
                count += 1
            elif kind == CALL:
                waiting[number] -= 1
                met[number] = max(met[number], now)
                if waiting[number] == 0:
                    last = before[number]
                    if on:
                        row = member[first[number]] + 0
                        heapq.heappush(queue, (met[number], row * width))
                    else:
                        if last >= 0:
                            met[number] = max(met[number], ended[member[first[last]]])
                        call, time = number, met[number] + seconds[number]
            else:
                other = begin[recv[number] if kind == SEND else send[number]]
                if kind == SEND:
                    taken += issue[lot[number]]
                if any_eager and eager[lot[number]]:
                    if kind == SEND:
                        mover, time = number, now
                        ended[row] = now + issue[lot[number]]
                        happened[count] = row
                        count += 1
                    elif landed[number] == landed[number]:  # NaN is not equal to itself
                        ended[row] = max(landed[number], now) + receipt[lot[number]]
                        happened[count] = row
                        count += 1
                elif other == other:
                    mover, time = number, max(now, other)
        elif top > 0:
            top -= 1
            k, stop = pointer[ready[top]], pointer[ready[top] + 1]
            base, taken = point[ready[top]], 0.0
        elif len(queue) > 0:
            time, entry = heapq.heappop(queue)
            while lander < 0 and call < 0:
                number, hop = link[entry // width] + 0, entry % width
                if role[entry // width] == CALL:
                    call, last = number, before[number]
                    over = time
                    if last >= 0:  # it waits for the call before, which may itself wait here
                        over = ended[member[first[last]]]
                        over = over if over == over else met[last]
                    if over > time or (last >= 0 and ended[member[first[last]]] != over):
                        met[call] = max(met[call], over)
                        time, entry = heapq.heappushpop(queue, (met[call], entry))
                        call = -1
                else:
                    kept, goes = lot[number], route[lot[number]]
                    place, last = at[goes] + hop, at[goes + 1]
                    if place < last:
                        start = max(time, free[hops[place]])
                        free[hops[place]] = start + (gap[kept] + body[kept] * pace[hops[place]])
                        delay[number] += start - time
                        time = start
                    if place + 1 < last:
                        time, entry = heapq.heappushpop(queue, (time, entry + 1))
                    else:
                        lander, time = number, moved[number] + flight[kept] + delay[number]
            if call >= 0:
                time = met[call] + seconds[call]
                for i in range(uses[pattern[call]], uses[pattern[call] + 1]):
                    until = max(met[call], free[used[i]]) + share[i] * volume[call]
                    free[used[i]] = until
                    time = max(time, until + tail[call])
        else:
            return
        if mover >= 0:
            if queued[mover]:
                time = max(time, moved[mover - 1] + occupy[lot[mover - 1]])
            moved[mover] = time
            if on:
                heapq.heappush(queue, (time + issue[lot[mover]], send[mover] * width))
            else:
                lander, time = mover, time + flight[lot[mover]]
        if lander >= 0:
            row = recv[lander] + 0
            if not any_eager or not eager[lot[lander]]:
                ended[send[lander]] = time
                happened[count] = send[lander]
                ended[row] = time + receipt[lot[lander]]
                happened[count + 1] = row
                count += 2
            else:
                landed[lander] = time
                if begin[row] == begin[row]:
                    ended[row] = max(time, begin[row]) + receipt[lot[lander]]
                    happened[count] = row
                    count += 1
        elif call >= 0:
            for i in range(first[call], first[call + 1]):
                ended[member[i]] = time
                happened[count] = member[i]
                count += 1
        while count > 0:
            count -= 1
            row = happened[count]
            if row >= 0:
                p, time = end[row] + 0, ended[row]
            else:
                row = -1 - row
                p, time = after[row] + 0, begin[row]
                if role[row] == SEND:
                    time += issue[lot[link[row]]]
            if p >= 0:
                if time > point[p] or (time == point[p] and (binder[p] < 0 or row < binder[p])):
                    point[p], binder[p] = time, row
                pending[p] -= 1
                if pending[p] == 0:
                    ready[top] = p
                    top += 1
