"""What leads from bar to bar: messages, collectives, and the waits of a deadlock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commlang.draw.bars import State
from commlang.draw.words import bytes_of, bytes_text, place_of, tip_of
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.checks.deadlock import Wait
    from commlang.draw.bars import Bar, Times
    from commlang.draw.fold import Fold
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.matching import Collectives, Messages

MOST_ARROWS = 1000
"""Most messages of a picture, those between the same two blocks counted once."""

LEAVES, ARRIVES = 0.78, 0.92
"""Where on the time of a message its arrow stands: to the right of the names in bars."""


@record
class Spot:
    """Where something begins or ends: on a bar, or where a rank would be that is not shown."""

    bar: Bar | None
    rank: int
    time: float


@record
class Arrow:
    """What leads from one spot to another; `count` such things lie on one another."""

    source: Spot
    target: Spot
    count: int
    tip: str


@dataclass(eq=False, slots=True)
class Band:
    """One collective on those of its members that are shown, from when all are there.

    `slot` is its place among those that end at the same time; it `flies` if it is asynchronous.
    """

    bars: list[Bar]
    start: float
    end: float
    tip: str
    slot: int = 0
    flies: bool = False


class Owners:
    """The bar of each row, among the bars of one timing; -1 for what is not shown."""

    def __init__(self, program: Program, fold: Fold, bars: list[Bar]) -> None:
        self.program, self.bars = program, bars
        self.of = np.full(len(program), -1, dtype=np.int32)
        for number, bar in enumerate(bars):
            self.of[bar.rows] = number
        self.gap = np.full(program.world, -1, dtype=np.int64)
        for number, gap in enumerate(fold.gaps):
            self.gap[gap.first : gap.last + 1] = number
        self.gaps = len(fold.gaps)

    def bar(self, row: int) -> Bar | None:
        """The bar of a row."""
        number = int(self.of[row])
        return self.bars[number] if number >= 0 else None

    def place(self, row: Array, other: Array) -> Array:
        """A number for where each row is: its bar, or its gap, or on which side of `other`."""
        rank = self.program.rank
        gap = self.gap[rank[row]]
        side = self.gaps + (rank[row] > rank[other])
        return np.where(
            self.of[row] >= 0, self.of[row] + self.gaps + 2, np.where(gap < 0, side, gap)
        )


def arrows(messages: Messages, owners: Owners, times: Times) -> tuple[list[Arrow], int]:
    """The messages with an end on some bar, and how many arrows would have been too many."""
    send, recv = messages.send, messages.recv
    shown = ((owners.of[send] >= 0) | (owners.of[recv] >= 0)) & ~np.isnan(times.end[recv])
    send, recv = send[shown], recv[shown]
    span = len(owners.bars) + owners.gaps + 2
    pair = owners.place(send, recv) * span + owners.place(recv, send)
    _, first, counts = np.unique(pair, return_index=True, return_counts=True)
    order = np.argsort(times.start[send[first]], kind="stable")[:MOST_ARROWS]
    found = [
        _arrow(owners, times, int(send[at]), int(recv[at]), int(count))
        for at, count in zip(first[order], counts[order], strict=True)
    ]
    return found, len(first) - len(found)


def _arrow(owners: Owners, times: Times, send: int, recv: int, count: int) -> Arrow:
    program = owners.program
    ends = f"rank {int(program.rank[send])} → rank {int(program.rank[recv])}"
    if count > 1:
        tip = f"{count:,} messages, the first {ends}"
    else:
        size = bytes_text(bytes_of(program, send))
        tip = f"{ends} · {size} · {program.text(send)} · {place_of(program, send)}"
    met, left, there = float(times.met[send]), float(times.end[send]), float(times.end[recv])
    both = max(min(left, there), met)  # what is asynchronous may have ended long before its wait
    there = both if program.site_of(recv).asynchronous else max(there, met)
    source = _spot(owners, send, met + (both - met) * LEAVES, times.head)
    target = _spot(owners, recv, met + (there - met) * ARRIVES, times.head)
    return Arrow(_beside(source, target), _beside(target, source), count, tip)


def _beside(spot: Spot, other: Spot) -> Spot:
    """A spot without a bar, moved to the time of a block at the other end."""
    if spot.bar is None and other.bar is not None and other.bar.is_block:
        return Spot(None, spot.rank, other.time)
    return spot


def _spot(owners: Owners, row: int, time: float, head: float) -> Spot:
    """A place on a row's bar; in the middle of a window, whose messages share an arrow."""
    bar = owners.bar(row)
    if bar is not None and bar.is_block and bar.start >= head:
        time = (bar.start + bar.end) / 2
    elif bar is not None:
        time = min(max(time, bar.start), bar.end)
    return Spot(bar, int(owners.program.rank[row]), time)


def bands(calls: Collectives, owners: Owners, times: Times) -> list[Band]:
    """The collectives that take place, on those of their bars that stand for one call."""
    single = np.array([b.state is State.ENDS and not b.is_block for b in owners.bars], dtype=bool)
    shown = np.flatnonzero((owners.of[calls.row] >= 0) & single[owners.of[calls.row]])
    instance = np.searchsorted(calls.start, shown, side="right") - 1
    found: list[Band] = []
    ending: dict[float, int] = {}
    for group in np.split(shown, np.flatnonzero(np.diff(instance)) + 1):
        numbers: list[int] = owners.of[calls.row[group]].tolist()
        bars = [owners.bars[number] for number in numbers]
        if len(bars) > 1:
            low, high = max(b.met for b in bars), min(b.end for b in bars)
            high = high if high > low else max(b.end for b in bars)
            row, slot = bars[0].row, ending.get(high, 0)
            flies = owners.program.site_of(row).asynchronous
            found.append(Band(bars, low, high, tip_of(owners.program, row), slot, flies))
            ending[high] = slot + 1
    return found


def ring_arrows(ring: Sequence[Wait], owners: Owners, times: Times) -> list[Arrow]:
    """The waits of a deadlock, each from who waits to what it waits for."""
    program = owners.program
    found: dict[tuple[int, int], Arrow] = {}
    for wait in ring:
        ends = np.array([wait.waiting]), np.array([wait.awaited])
        place = int(owners.place(*ends)[0]), int(owners.place(*ends[::-1])[0])
        if max(place) < owners.gaps + 2:
            continue
        one, other = int(program.rank[wait.waiting]), int(program.rank[wait.awaited])
        tip = (
            f"rank {one} waits at {_statement(program, wait.waiting)} "
            f"for rank {other} to reach {_statement(program, wait.awaited)}"
        )
        here = Spot(owners.bar(wait.waiting), one, times.last + 1)
        bar = owners.bar(wait.awaited)
        there = Spot(bar, other, bar.start if bar is not None else times.last + 1.5)
        earlier = found.get(place)
        found[place] = Arrow(here, there, earlier.count + 1 if earlier else 1, tip)
    return list(found.values())


def _statement(program: Program, row: int) -> str:
    return f"{place_of(program, row)} `{program.text(row)}`"
