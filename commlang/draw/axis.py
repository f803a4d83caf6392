"""Where times and lanes lie in a picture, and what stands on the axis of time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from commlang.draw.words import STEPS, time_text
from commlang.records import entity

if TYPE_CHECKING:
    from commlang.draw.bars import Bar, Lane
    from commlang.draw.fold import Gap
    from commlang.draw.links import Spot
    from commlang.draw.scene import Scene

TRACK = 22
"""Height of a track, of which a bar leaves 2 free above and below."""
PADDING, GAP = 5, 22
STEP, NARROWEST, WIDEST = 76, 560, 1900
AXIS = 26


@entity
class Axis:
    """The places of a scene's parts, in pixels.

    `lane_at` are the upper edges of lanes, `gap_at` those of gaps; all end at `bottom`.
    """

    left: float
    top: float
    width: float
    first: float
    last: float
    lane_at: list[float]
    gap_at: list[float]
    bottom: float
    places: dict[int, float]

    def x(self, time: float) -> float:
        """Where a time is."""
        return self.left + (time - self.first) / (self.last - self.first) * self.width

    def y(self, lane: Lane, track: int = 0) -> float:
        """The upper edge of a track."""
        return self.places[id(lane)] + PADDING + track * TRACK

    def middle(self, bar: Bar) -> float:
        """Half the height of a bar."""
        return self.y(bar.lane, bar.track) + TRACK / 2


def lay_out(scene: Scene, left: float, top: float) -> Axis:
    """Give everything its place; `left` is the room for names of lanes."""
    last = max((bar.end for bar in scene.bars), default=scene.last)
    last = max(last, scene.last)
    if last <= scene.first:
        last = scene.first + 1
    steps = last - scene.first if scene.unit == STEPS else WIDEST / STEP
    width = min(max(steps * STEP, NARROWEST), WIDEST)
    axis = Axis(left, top, float(width), scene.first, last, [], [], top, {})
    gaps = list(enumerate(scene.fold.gaps))
    y = top
    for lane in scene.lanes:
        while gaps and gaps[0][1].first < lane.rank:
            axis.gap_at.append(y)
            y += GAP
            gaps.pop(0)
        axis.lane_at.append(y)
        axis.places[id(lane)] = y
        y += lane.tracks * TRACK + 2 * PADDING
    for _ in gaps:
        axis.gap_at.append(y)
        y += GAP
    axis.bottom = y
    return axis


def place_of_rank(scene: Scene, axis: Axis, rank: int, near: float) -> float:
    """Where a rank without a lane would be: in its gap, or a little above or below `near`."""
    for gap, y in zip(scene.fold.gaps, axis.gap_at, strict=True):
        if gap.first <= rank <= gap.last:
            return y + GAP / 2
    above = [at for lane, at in zip(scene.lanes, axis.lane_at, strict=True) if lane.rank < rank]
    return near + (TRACK if above and max(above) >= near - 2 * TRACK else -TRACK)


def spot_at(scene: Scene, axis: Axis, spot: Spot, near: float) -> tuple[float, float]:
    """Where an arrow begins or ends; `near` is the height of its other end."""
    if spot.bar is not None:
        return axis.x(spot.time), axis.middle(spot.bar)
    return axis.x(spot.time), place_of_rank(scene, axis, spot.rank, near)


def gap_of(scene: Scene, number: int) -> Gap:
    """A gap by its number."""
    return scene.fold.gaps[number]


def ticks(scene: Scene, axis: Axis) -> list[tuple[float, str]]:
    """Times that are written on the axis, at most one each 90 pixels."""
    span = (scene.stops or scene.last) - axis.first
    if span <= 0:
        return []
    most = max(axis.width * span / (axis.last - axis.first) / 90, 1)
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    size = next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)
    if scene.unit == STEPS:
        size = max(round(size), 1)
    count = int(span / size + 1e-9)
    times = [axis.first + size * n for n in range(count + 1)]
    return [(time, _tick(time, scene.unit)) for time in times]


def _tick(time: float, unit: str) -> str:
    return f"{time:.0f}" if unit == STEPS else time_text(time, unit)
