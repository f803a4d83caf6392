"""Where times and lanes lie in a picture, and what stands on the axis of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlang.draw.scale import even
from commlang.draw.words import STEPS, time_text

if TYPE_CHECKING:
    from commlang.draw.bars import Bar, Lane
    from commlang.draw.links import Spot
    from commlang.draw.scene import Scene

TRACK = 22
"""Height of a track, of which a bar leaves 2 free above and below."""
PADDING, GAP = 5, 22
STEP, NARROWEST, WIDE, WIDEST = 76, 560, 1900, 3400
LEAST_STEP = 34
AXIS = 26


@dataclass(eq=False, slots=True)
class Axis:
    """The places of a scene's parts, in pixels.

    `lane_at` are the upper edges of lanes, `gap_at` those of gaps; all end at `bottom`.
    """

    scene: Scene
    left: float
    top: float
    width: float
    cell: float
    lane_at: list[float]
    gap_at: list[float]
    bottom: float
    places: dict[int, float]

    def x(self, time: float) -> float:
        """Where a time is."""
        return self.left + self.scene.scale.cell(time) * self.cell

    def y(self, lane: Lane, track: int = 0) -> float:
        """The upper edge of a track."""
        return self.places[id(lane)] + PADDING + track * TRACK

    def middle(self, bar: Bar) -> float:
        """Half the height of a bar."""
        return self.y(bar.lane, bar.track) + TRACK / 2


def lay_out(scene: Scene, left: float, top: float) -> Axis:
    """Give everything its place; `left` is the room for names of lanes."""
    last = max([scene.last, *(bar.end for bar in scene.bars)])
    cells = max(scene.scale.cell(last), 1.0)
    widest = max(WIDE, min(cells * LEAST_STEP, WIDEST)) if scene.unit == STEPS else WIDE
    width = float(min(max(cells * STEP, NARROWEST), widest))
    axis = Axis(scene, left, top, width, width / cells, [], [], top, {})
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


def ticks(scene: Scene, axis: Axis) -> list[tuple[float, str]]:
    """Times that are written on the axis, far enough from one another."""
    scale = scene.scale
    if scene.unit == STEPS:
        end = scene.last if scene.stops is None else scene.stops
        cells = [float(cell) for cell in range(int(scale.cell(end)) + 1)]
        times = [scale.time(cell) for cell in even(cells, int(axis.cell * len(cells) / 60))]
        return [(time, f"{time:.0f}") for time in times]
    span = scene.last - scene.first
    if span <= 0:
        return []
    size = _spacing(span, axis.width)
    first = math.ceil(scene.first / size - 1e-9)
    times = [size * n for n in range(first, math.floor(scene.last / size + 1e-9) + 1)]
    return [(time, time_text(time, scene.unit)) for time in times]


def _spacing(span: float, width: float) -> float:
    """1, 2 or 5 times a power of ten, so that marks stand 90 pixels apart or more."""
    rough = span / max(width / 90, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)
