"""A timeline before it has a format: lanes, bars, and what leads from bar to bar."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from commlang.draw.bars import Bar, Lane, State, Times, lane_bars
from commlang.draw.fold import Fold, fold
from commlang.draw.links import Owners, arrows, bands, ring_arrows
from commlang.draw.scale import clock_scale, step_scale
from commlang.draw.times import MOST_STEPS, PROGRAM_ORDER, meeting_times, program_order
from commlang.draw.words import STEPS
from commlang.program.matching import match_collectives, match_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.draw.links import Arrow, Band
    from commlang.draw.scale import Scale
    from commlang.draw.subject import Subject
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.matching import Collectives, Messages
    from commlang.program.timing import Timing

ROOM, LEAST_ROOM, MOST_ROOM = 1600, 24, 400
"""Bars of a picture, about, and of each of its lanes."""
MOST_RING = 8
"""Ranks of a deadlock that get a lane each."""


@dataclass(eq=False, slots=True)
class Scene:
    """All there is to draw, in the order of lanes. `unit` is `STEPS` or `s`."""

    program: Program
    fold: Fold
    origins: tuple[str, ...]
    unit: str
    first: float
    last: float
    scale: Scale
    critical: Array
    """Whether each row is on the critical path."""
    stops: float | None = None
    """When nothing moves any more, in a program that hangs."""
    lanes: list[Lane] = field(default_factory=list[Lane])
    bars: list[Bar] = field(default_factory=list[Bar])
    arrows: list[Arrow] = field(default_factory=list["Arrow"])
    bands: list[Band] = field(default_factory=list["Band"])
    ring: list[Arrow] = field(default_factory=list["Arrow"])
    notes: list[str] = field(default_factory=list[str])


def make_scene(subject: Subject, room: int = ROOM) -> Scene:
    """The timeline of a subject; `room` is about how many bars there may be."""
    program = subject.program
    messages, calls = match_messages(program), match_collectives(program)
    timings, cut = subject.timings, 0
    if not timings:
        order = program_order(program, messages, calls)
        timings, cut = (order.timing,), order.cut
    hangs = not subject.timings and not cut
    starts = np.concatenate([t.start for t in timings])
    finals = np.concatenate([t.end for t in timings])
    first, last = _span(np.concatenate([starts, finals]))
    stops = last if hangs and bool(np.isnan(finals).any()) else None
    involved = [int(program.rank[wait.waiting]) for wait in subject.ring]
    chosen = fold(program, subject.ranks, involved[:MOST_RING])
    origins, unit = tuple(t.origin for t in timings), _unit(timings)
    lanes = max(len(chosen.shown) * len(timings), 1)
    room = max(LEAST_ROOM, min(MOST_ROOM, room // lanes))
    mets = [meeting_times(messages, calls, timing) for timing in timings]
    if unit == STEPS:
        scale = step_scale(program, chosen, timings[0], mets[0], room)
    else:
        most = max((len(program.rows_of(rank)) for rank in chosen.shown), default=0)
        scale = clock_scale(first, last, most, room)
    critical = np.zeros(len(program), dtype=np.bool_)
    if subject.critical is not None:
        critical[subject.critical] = True
    scene = Scene(program, chosen, origins, unit, first, last, scale, critical, stops)
    scene.notes += _folding(chosen, scale, unit, cut)
    for number, (timing, met) in enumerate(zip(timings, mets, strict=True)):
        span = first, last, hangs, scale.head, scale.windows
        times = Times(timing.start, met, timing.end, *span)
        owners = Owners(program, chosen, _bars(scene, subject, times, number))
        _link(scene, subject, messages, calls, owners, times)
    scene.lanes.sort(key=lambda lane: (lane.rank, lane.timing))
    return scene


def _span(times: Array) -> tuple[float, float]:
    known = times[~np.isnan(times)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)


def _unit(timings: Sequence[Timing]) -> str:
    return STEPS if all(t.origin == PROGRAM_ORDER for t in timings) else "s"


def _bars(scene: Scene, subject: Subject, times: Times, timing: int) -> list[Bar]:
    """The bars of all lanes of one timing, which the scene gets too."""
    kept = {row for wait in subject.ring for row in (wait.waiting, wait.awaited)}
    program, mine, missing = scene.program, list[Bar](), 0
    for rank in scene.fold.shown:
        lane = Lane(rank, timing, 1)
        bars = lane_bars(program, program.rows_of(rank), lane, times, kept)
        lane.tracks = max((bar.track for bar in bars), default=0) + 1
        scene.lanes.append(lane)
        mine += bars
        rows = program.rows_of(rank)
        missing += int(np.isnan(times.start[rows.start : rows.stop]).sum())
    scene.bars += mine
    if missing and scene.unit != STEPS:
        origin = scene.origins[timing]
        scene.notes.append(f"Events without a time, which are not drawn: {missing:,} ({origin}).")
    blocks = [bar for bar in mine if bar.is_block and bar.state is State.ENDS]
    if blocks:
        folded = sum(len(bar.rows) for bar in blocks)
        scene.notes.append(f"{folded:,} events stand in {len(blocks):,} blocks of neighbours.")
    return mine


def _link(
    scene: Scene,
    subject: Subject,
    messages: Messages,
    calls: Collectives,
    owners: Owners,
    times: Times,
) -> None:
    found, more = arrows(messages, owners, times)
    scene.arrows += found
    if more:
        scene.notes.append(f"{more:,} more messages are not drawn.")
    scene.bands += bands(calls, owners, times)
    if times.hangs:
        scene.ring += ring_arrows(subject.ring, owners, times)


def _folding(chosen: Fold, scale: Scale, unit: str, cut: int) -> list[str]:
    notes: list[str] = []
    if chosen.told:
        hidden = sum(gap.count for gap in chosen.gaps)
        notes.append(f"{hidden:,} ranks are not shown; alike are those that run {chosen.told}.")
    gaps = np.diff(scale.knots[scale.knots <= scale.head])
    if unit == STEPS and bool((gaps > 1).any()):
        notes.append("Steps in which no rank that is shown starts or ends anything are left out.")
    if cut:
        notes.append(f"{cut:,} events after step {MOST_STEPS:,} are not drawn.")
    return notes
