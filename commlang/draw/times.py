"""When events happen where no clock has told: in program order, as early as meetings allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.constraints import rendezvous
from commlang.program.cycles import reached_levels
from commlang.program.points import find_points
from commlang.program.timing import Timing
from commlang.records import entity

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.matching import Collectives, Messages
    from commlang.program.points import Points

PROGRAM_ORDER = "program order"
MOST_STEPS = 100_000
"""Steps that are worked out: a picture shows a few hundred, and each costs some microseconds."""


@entity
class Order:
    """A program by steps instead of seconds.

    In `timing` what never ends has no end and what never starts no start. `cut` rows come after
    the last step that was worked out.
    """

    timing: Timing
    cut: int


def program_order(program: Program, messages: Messages, calls: Collectives) -> Order:
    """When events happen if each takes a step and starts as soon as its rank gets to it.

    A message ends a step after both its ends have started, a collective after all its members
    have, what is asynchronous when its wait ends; what has no counterpart never ends. Deadlocked
    programs are as good as others.
    """
    points = find_points(program, local=True)
    edges = rendezvous(program, messages, calls, points)
    held = _never_ending(program, messages, calls, points)
    level, reached = reached_levels(points, edges, held, MOST_STEPS)
    cut = bool(level.max(initial=0) >= MOST_STEPS - 1)
    # Meetings are levels of their own, in which nothing starts or ends: number those of points.
    step = np.zeros(MOST_STEPS + 1, dtype=np.int64)
    step[np.unique(level[: points.count])] = 1
    step = np.cumsum(step) - 1
    time = np.where(reached[: points.count], step[level[: points.count]], np.nan)
    end = np.where(points.end < 0, points.after, points.end)
    timing = Timing(time[points.start], time[end], PROGRAM_ORDER)
    # Beside others in a `parallel:` what has ended does not wait for them, as its rank does.
    ends = ~program.site_async[program.site] & (program.kind != Kind.WAIT)
    timing.end[ends] = meeting_times(messages, calls, timing)[ends] + 1
    return Order(timing, int(np.isnan(timing.end).sum()) if cut else 0)


def _never_ending(
    program: Program, messages: Messages, calls: Collectives, points: Points
) -> Array:
    """The points at which something would end that lacks a counterpart, each once."""
    missing = np.repeat(~calls.whole, np.diff(calls.start))
    rows = np.concatenate([messages.lone, calls.row[missing]])
    ends = points.end[rows]
    return np.unique(ends[ends >= 0])


def meeting_times(messages: Messages, calls: Collectives, timing: Timing) -> Array:
    """Per row, when the last of those that it needs has started; NaN if that never happens.

    What needs nobody meets at its own start.
    """
    met = timing.start.copy()
    met[messages.send] = np.maximum(met[messages.send], timing.start[messages.recv])
    met[messages.recv] = met[messages.send]
    met[messages.lone] = np.nan
    if len(calls.row):
        latest = np.maximum.reduceat(timing.start[calls.row], calls.start[:-1])
        latest[~calls.whole] = np.nan
        met[calls.row] = np.repeat(latest, np.diff(calls.start))
    return met
