"""Finite buffers: a send ends once its message fits into a channel that holds so many.

A channel of capacity k ties the end of its (i + k)-th send to the start of its i-th recv; with
capacity 0 that is `rendezvous`. What hangs at every capacity waits in a ring of recvs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.program.constraints import between, calls, tie
from commlang.transports.events import Graph

if TYPE_CHECKING:
    from commlang.transports.events import Events

_WORK = 30_000_000
"""How many events the search for a capacity may look at in all."""


def graph(events: Events, capacity: int | None) -> Graph:
    """The graph of a program whose channels buffer so many messages each, None for any number."""
    program, messages, points = events.program, events.messages, events.points
    parts = [between(points, messages.send, messages.recv)]
    parts += calls(program, events.collectives, points)
    if capacity is not None:
        ahead = np.flatnonzero(_channels_match(events, capacity))
        recv, send = messages.recv[ahead], messages.send[ahead + capacity]
        parts.append(between(points, recv, send))
    return Graph(points, tie(points, len(events.collectives.start) - 1, parts))


def least_capacity(events: Events) -> int | None:
    """How many messages a channel must hold for the program to end; None if no number helps.

    Where finding the exact number would take too long it is 0: some number does.
    """
    if graph(events, None).hangs():
        return None
    low, high = 0, 1  # it hangs with `low`
    budget = _WORK - len(events.program)
    while graph(events, high).hangs():
        low, high = high, 2 * high
        budget -= len(events.program)
        if budget < 0:
            return 0
    while high - low > 1:
        middle = (low + high) // 2
        if graph(events, middle).hangs():
            low = middle
        else:
            high = middle
    return high


def _channels_match(events: Events, distance: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each message whether the one `distance` later in `messages` is on its channel."""
    program, send = events.program, events.messages.send
    one, other = send[: len(send) - distance], send[distance:]
    same = np.ones(len(one), dtype=np.bool_)
    for column in (program.rank, program.peer, program.group, program.tag):
        same &= column[one] == column[other]
    return same
