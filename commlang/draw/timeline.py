"""The timeline as SVG: a lane per rank, bars for events, arrows for messages, bands for calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw.axis import GAP, PADDING, TRACK, Axis, lay_out, ticks
from commlang.draw.marks import arrow_mark, band_mark, bar_mark, wait_mark
from commlang.draw.scene import make_scene
from commlang.draw.styles import DEFINITIONS, STYLE, legend
from commlang.draw.svg import CHARACTER, document, element, fitted, mark, number, text
from commlang.draw.told import lane_name, said, subtitle
from commlang.draw.words import STEPS

if TYPE_CHECKING:
    from commlang.draw.scene import Scene
    from commlang.draw.subject import Subject

MARGIN, LINE = 14, 16
HEAD = 84
"""Room for the title, what the times are, and the legend."""
TITLE = 8.2
"""Mean width of a character of the title."""


def svg(subject: Subject) -> str:
    """The timeline of a subject."""
    scene = make_scene(subject)
    names = [lane_name(scene, at) for at in range(len(scene.lanes))]
    left = MARGIN + max([*map(len, names), 6]) * CHARACTER + 10
    axis = lay_out(scene, left, HEAD + LINE)
    keys, ends = legend(scene, MARGIN, 62)
    lines = said(scene)
    words = [*lines, *(gap.words for gap in scene.fold.gaps), subtitle(scene)]
    right = max(left + axis.width, ends, *(len(w) * CHARACTER + MARGIN for w in words))
    bottom = axis.bottom + LINE * 1.5
    body = [
        DEFINITIONS,
        text(MARGIN, 22, fitted(subject.title, right / TITLE * CHARACTER), class_="title"),
        text(MARGIN, 40, subtitle(scene), class_="dim"),
        *keys,
        *_lanes(scene, axis, names),
        *_ruler(scene, axis),
        *[band_mark(axis, band) for band in scene.bands],
        *[bar_mark(scene, axis, bar) for bar in scene.bars],
        *[arrow_mark(scene, axis, arrow) for arrow in scene.arrows],
        *_gaps(scene, axis),
        *[wait_mark(scene, axis, at, arrow) for at, arrow in enumerate(scene.ring, 1)],
        *[text(MARGIN, bottom + LINE * at, line) for at, line in enumerate(lines)],
    ]
    height = bottom + LINE * len(lines)
    return document(right + MARGIN, height, body, title=subject.title, style=STYLE)


def _lanes(scene: Scene, axis: Axis, names: list[str]) -> list[str]:
    """Lanes with their names."""
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
    return parts


def _gaps(scene: Scene, axis: Axis) -> list[str]:
    parts: list[str] = []
    for gap, y in zip(scene.fold.gaps, axis.gap_at, strict=True):
        words = text(axis.left + 6, y + GAP / 2 + 4, gap.words, class_="dim halo")
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
    if scene.scale.folds and scene.unit == STEPS:
        parts += _fold_mark(scene, axis)
    if scene.stops is not None:
        x = axis.x(scene.stops + 1)
        path = f"M{number(x)} {number(axis.top - 3)}V{number(axis.bottom)}"
        parts.append(element("path", class_="stop", d=path))
        words = "nothing moves from here on"
        # Where nothing is left to start, the line is the right edge, and the words go before it.
        fits = x + 4 + len(words) * CHARACTER <= axis.left + axis.width
        at, side = (x + 4, "") if fits else (x - 4, " end")
        parts.append(text(at, axis.top - 6, words, class_=f"alarm small{side}"))
    return parts


def _fold_mark(scene: Scene, axis: Axis) -> list[str]:
    """Where the scale of time changes."""
    x = axis.x(scene.scale.head)
    path = f"M{number(x)} {number(axis.top - 18)}V{number(axis.bottom)}"
    words = text(x + 4, axis.top - 20, "from here on time is drawn smaller", class_="dim small")
    return [element("path", class_="scale", d=path), words]
