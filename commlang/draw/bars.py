"""The bars of one lane: its events, or blocks of many where there is no room for each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.program import Program
    from commlang.program.columns import Array

TRACKS = 6
"""Most bars that stand side by side in a lane; what more runs at once is one block."""
AHEAD = 2
"""Events behind a deadlock that are shown in a lane beside those that others wait for."""


MOST_KEPT = 100_000
"""How far behind a deadlock events may stand that are shown since others wait for them."""


class State(StrEnum):
    """What becomes of an event."""

    ENDS = "ends"
    HANGS = "hangs"
    NEVER = "never starts"


@dataclass(eq=False, slots=True)
class Lane:
    """What one rank does by one of the timings; `tracks` are its lines."""

    rank: int
    timing: int
    tracks: int


@dataclass(eq=False, slots=True)
class Bar:
    """One event of a lane, or a block of several; `rows` are theirs.

    From `start` to `met` it waits for its counterparts, from there to `end` it works.
    """

    lane: Lane
    start: float
    met: float
    end: float
    rows: Array
    state: State = State.ENDS
    track: int = 0

    @property
    def row(self) -> int:
        """The row of its event, or the first of its block."""
        return int(self.rows[0])

    @property
    def is_block(self) -> bool:
        """Whether it stands for several events."""
        return len(self.rows) > 1


@record
class Times:
    """When each row starts, has met its counterparts and ends; NaN for never (or not known).

    What happens at all happens from `first` to `last`. With `hangs`, what has no end hangs;
    without, it is not known and not drawn. What starts from `head` on is shown in so many `windows`
    of time.
    """

    start: Array
    met: Array
    end: Array
    first: float
    last: float
    hangs: bool
    head: float
    windows: int


def lane_bars(
    program: Program, rows: range, lane: Lane, times: Times, kept: Iterable[int]
) -> list[Bar]:
    """The bars of a rank's rows; of those that never start `kept` ones get bars of their own.

    Bars are in the order of their start, each on a track on which it is alone.
    """
    start = times.start[rows.start : rows.stop]
    started = np.flatnonzero(~np.isnan(start))
    order = started[np.argsort(start[started], kind="stable")] + rows.start
    folds = times.head < times.last
    head = int(np.searchsorted(times.start[order], times.head)) if folds else len(order)
    groups = [*_singles(order[:head], times), *_windows(order[head:], times)]
    bars = [_bar(lane, group, times) for group in groups]
    for bar, following in pairwise(bars):
        if bar.is_block:
            bar.end = max(bar.start, min(bar.end, following.start))
    bars = _on_tracks(bars)
    if times.hangs:
        never = np.flatnonzero(np.isnan(start)) + rows.start
        bars += _never(lane, never, times, set(kept))
    return bars


def _singles(order: Array, times: Times) -> list[Array]:
    """Each row by itself, but of many that start at once only some."""
    fresh = np.flatnonzero(np.diff(times.start[order])) + 1
    groups: list[Array] = []
    for group in np.split(order, fresh):
        each = len(group) if len(group) <= TRACKS else TRACKS - 1
        groups += np.split(group, range(1, each + (each < len(group))))
    return [group for group in groups if len(group)]


def _windows(order: Array, times: Times) -> list[Array]:
    """Rows by windows of time that all lanes share; those that hang stay apart."""
    span = max(times.last - times.head, 1e-300)
    place = ((times.start[order] - times.head) / span * times.windows).astype(np.int64)
    fresh = np.flatnonzero(np.diff(place)) + 1
    groups: list[Array] = []
    for group in np.split(order, fresh) if len(order) else []:
        stuck = np.isnan(times.end[group])
        if times.hangs and stuck.any() and len(group) > 1:
            groups += [group[~stuck]] if not stuck.all() else []
            groups += np.split(group[stuck], np.arange(1, int(stuck.sum())))[:TRACKS]
        else:
            groups.append(group)
    return groups


def _bar(lane: Lane, group: Array, times: Times) -> Bar:
    start, end = times.start[group], times.end[group]
    if times.hangs and np.isnan(end).any():
        return Bar(lane, float(start[0]), times.last + 1, times.last + 1, group, State.HANGS)
    met = float(times.met[group[0]]) if len(group) == 1 else float(start[0])
    final = np.nanmax(end) if not np.isnan(end).all() else start[-1]
    low, high = float(start[0]), float(max(final, start[0]))
    return Bar(lane, low, min(max(met, low), high) if met == met else low, high, group)


def _on_tracks(bars: list[Bar]) -> list[Bar]:
    """Give each bar the first track that is free; what finds none joins the block of the last."""
    free = [-np.inf] * TRACKS
    last: Bar | None = None
    placed: list[Bar] = []
    for bar in bars:
        # What takes no time still takes room: two such never share a place.
        track = next((t for t in range(TRACKS) if free[t] <= bar.start), None)
        if track is None:
            assert last is not None
            last.rows = np.concatenate([last.rows, bar.rows])
            last.end = free[-1] = max(last.end, bar.end)
            last.met = last.start if last.state is State.ENDS else last.met
            continue
        bar.track, free[track] = track, bar.end
        placed.append(bar)
        if track == TRACKS - 1:
            last = bar
    return placed


def _never(lane: Lane, rows: Array, times: Times, kept: set[int]) -> list[Bar]:
    """What a rank never gets to, behind the moment from which nothing moves."""
    chosen = sorted({*rows[:AHEAD].tolist(), *(kept & set(rows[:MOST_KEPT].tolist()))})
    bars = [
        Bar(lane, at := times.last + 1.5 + place, at + 1, at + 1, np.array([row]), State.NEVER)
        for place, row in enumerate(chosen)
    ]
    rest = rows[~np.isin(rows, chosen)]
    if len(rest):
        at = times.last + 1.5 + len(chosen)
        bars.append(Bar(lane, at, at + 1, at + 1, rest, State.NEVER))
    return bars
