"""The timeline as SVG: a lane per rank, bars for events, arrows for messages, bands for calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw.axis import GAP, PADDING, TRACK, Axis, lay_out, ticks
from commlang.draw.marks import arrow_mark, band_mark, bar_mark, wait_mark
from commlang.draw.scene import make_scene
from commlang.draw.styles import DEFINITIONS, STYLE, legend
from commlang.draw.svg import CHARACTER, document, element, fitted, mark, number, text
from commlang.draw.words import STEPS, time_text

if TYPE_CHECKING:
    from commlang.draw.scene import Scene
    from commlang.draw.subject import Subject

MARGIN, LINE = 14, 16
HEAD = 76
"""Room for the title, what the times are, and the legend."""
TITLE = 8.2
"""Mean width of a character of the title."""
MOST_LINES = 12


def svg(subject: Subject) -> str:
    """The timeline of a subject."""
    scene = make_scene(subject)
    names = [_lane_name(scene, at) for at in range(len(scene.lanes))]
    left = MARGIN + max([*map(len, names), 6]) * CHARACTER + 10
    axis = lay_out(scene, left, HEAD + LINE)
    keys, ends = legend(scene, MARGIN, 62)
    said = _said(scene)
    words = [*said, *(gap.words for gap in scene.fold.gaps), _subtitle(scene)]
    right = max(left + axis.width, ends, *(len(w) * CHARACTER + MARGIN for w in words))
    bottom = axis.bottom + LINE * 1.5
    body = [
        DEFINITIONS,
        text(MARGIN, 22, fitted(subject.title, right / TITLE * CHARACTER), class_="title"),
        text(MARGIN, 40, _subtitle(scene), class_="dim"),
        *keys,
        *_lanes(scene, axis, names),
        *_ruler(scene, axis),
        *[band_mark(axis, band) for band in scene.bands],
        *[bar_mark(scene, axis, bar) for bar in scene.bars],
        *[arrow_mark(scene, axis, arrow) for arrow in scene.arrows],
        *[wait_mark(scene, axis, at, arrow) for at, arrow in enumerate(scene.ring, 1)],
        *[text(MARGIN, bottom + LINE * at, line) for at, line in enumerate(said)],
    ]
    height = bottom + LINE * len(said)
    return document(right + MARGIN, height, body, title=subject.title, style=STYLE)


def _lane_name(scene: Scene, at: int) -> str:
    lane = scene.lanes[at]
    if len(scene.origins) == 1:
        return f"rank {lane.rank:,}"
    return scene.origins[lane.timing] if lane.timing else f"rank {lane.rank:,}"


def _subtitle(scene: Scene) -> str:
    """Where the times come from."""
    if scene.unit == STEPS:
        told = "Program order: an event takes a step once all that it needs are there"
        steps = f"{scene.last - scene.first:,.0f} steps"
        return f"{told}; {steps}" + (", then a deadlock" if scene.ring else "") + "."
    span = time_text(scene.last - scene.first, scene.unit)
    first, *others = scene.origins
    below = "".join(f"; below it {other}" for other in others)
    return f"{first[:1].upper()}{first[1:]}{below}; {span} in all."


def _said(scene: Scene) -> list[str]:
    """The notes, and the waits of a deadlock in words."""
    waits = [f"{turn}: {arrow.tip}" for turn, arrow in enumerate(scene.ring, 1)]
    if len(waits) > MOST_LINES:
        waits = [*waits[:MOST_LINES], f"… and {len(waits) - MOST_LINES} more"]
    return [*waits, *scene.notes]


def _lanes(scene: Scene, axis: Axis, names: list[str]) -> list[str]:
    """Lanes with their names, and lines that say who stands in the gaps between them."""
    parts: list[str] = []
    for lane, y, name in zip(scene.lanes, axis.lane_at, names, strict=True):
        height = lane.tracks * TRACK + 2 * PADDING
        style = "lane" if lane.timing == 0 else "lane other"
        parts.append(
            element(
                "rect", class_=style, x=axis.left, y=y, width=axis.width, height=float(height - 2)
            )
        )
        tone = "end" if lane.timing == 0 else "end dim"
        parts.append(text(axis.left - 8, y + height / 2 + 3, name, class_=tone))
    for gap, y in zip(scene.fold.gaps, axis.gap_at, strict=True):
        words = text(axis.left + 6, y + GAP / 2 + 4, gap.words, class_="dim")
        dots = text(axis.left - 8, y + GAP / 2 + 4, "⋮", class_="end dim")
        parts.append(mark(gap.words, dots, words))
    return parts


def _ruler(scene: Scene, axis: Axis) -> list[str]:
    """The axis of time, and the moment from which nothing moves."""
    parts: list[str] = []
    for time, words in ticks(scene, axis):
        x = axis.x(time)
        path = f"M{number(x)} {number(axis.top - 3)}V{number(axis.bottom)}"
        parts.append(element("path", class_="rule", d=path))
        parts.append(text(x, axis.top - 6, words, class_="dim small mid"))
    if scene.stops is not None:
        x = axis.x(scene.stops + 1)
        path = f"M{number(x)} {number(axis.top - 3)}V{number(axis.bottom)}"
        parts.append(element("path", class_="stop", d=path))
        parts.append(text(x + 4, axis.top - 6, "nothing moves from here on", class_="alarm small"))
    return parts
