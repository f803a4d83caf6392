"""The parts of a timeline as SVG: bars, arrows, bands, waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.draw.axis import TRACK, spot_at
from commlang.draw.bars import State
from commlang.draw.styles import family
from commlang.draw.svg import CHARACTER, element, label, mark, number, text
from commlang.draw.words import counts_text, kinds_text, name_of, short_name, time_text, tip_of

if TYPE_CHECKING:
    from commlang.draw.axis import Axis
    from commlang.draw.bars import Bar
    from commlang.draw.links import Arrow, Band
    from commlang.draw.scene import Scene
    from commlang.program import Program

HEIGHT = 18
"""Of a bar."""
FEW_ARROWS = 80
"""Only among so many is there room to write on each for how many messages it stands."""


def bar_mark(scene: Scene, axis: Axis, bar: Bar) -> str:
    """A bar, underlined where it is on the critical path."""
    x, y = axis.x(bar.start), axis.y(bar.lane, bar.track) + (TRACK - HEIGHT) / 2
    width = max(axis.x(bar.end) - x - 1, 1.0)
    parts = _block(scene.program, bar, x, y, width) if bar.is_block else None
    tip = _tip(scene, bar) if parts is None else _block_tip(scene, bar)
    parts = _single(scene, axis, bar, x, y, width) if parts is None else parts
    if on_critical_path(scene, bar):
        low = x if bar.is_block else axis.x(bar.met)
        parts.append(_rect("alarm", low, y + HEIGHT - 1, max(x + width - low, 1.0), 3, rx=0))
        tip += " · on the critical path"
    return mark(tip, *parts)


def on_critical_path(scene: Scene, bar: Bar) -> bool:
    """Whether a bar, of the planned times, has an event on the critical path."""
    return bar.lane.timing == 0 and bool(scene.critical[bar.rows].any())


def _single(scene: Scene, axis: Axis, bar: Bar, x: float, y: float, width: float) -> list[str]:
    """An event: its waiting part hatched, then its work, and as much of its name as fits."""
    program = scene.program
    name, key = name_of(program, bar.row), family(int(program.kind[bar.row]))
    parts: list[str] = []
    if bar.state is State.NEVER:
        parts.append(_rect("ghost", x, y, width))
        parts.append(label(x + 4, y + 13, name, width - 8, class_="dim"))
        return parts
    idle = width if bar.state is State.HANGS else min(axis.x(bar.met) - x, width)
    if idle >= 2:
        parts += [_rect(f"b idle {key}", x, y, idle), _rect("hatch", x, y, idle)]
    flying = " fly" if program.site_of(bar.row).asynchronous else ""
    if width - idle >= 1:
        parts.append(_rect(f"b {key}{flying}", x + idle, y, width - idle, rx=8 if flying else 2))
    if bar.state is State.HANGS:
        parts.append(_rect("stuck", x, y, width))
    work = width - idle
    room, at = (work, x + idle) if work >= idle else (idle, x)
    on = "on" if work >= idle else "on wide"
    short = short_name(program, bar.row)
    parts.append(label(at + 4, y + 13, name, room - 6, short=short, class_=on))
    return parts


def _rect(names: str, x: float, y: float, width: float, height: float = HEIGHT, rx: int = 2) -> str:
    return element("rect", class_=names, x=x, y=y, width=width, height=float(height), rx=rx)


def _block(program: Program, bar: Bar, x: float, y: float, width: float) -> list[str]:
    """Stripes as high as each kind's part in the block, and how many events it has."""
    if bar.state is State.NEVER:
        words = f"+{len(bar.rows):,} more"
        frame = _rect("ghost", x, y, width)
        return [frame, label(x + 4, y + 13, words, width - 8, class_="dim")]
    kinds, counts = np.unique(program.kind[bar.rows], return_counts=True)
    share: dict[str, float] = {}
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        share[family(kind)] = share.get(family(kind), 0) + count / len(bar.rows)
    parts: list[str] = []
    at = y
    for key, part in share.items():
        height = part * HEIGHT
        parts.append(_rect(f"b idle {key}", x, at, width, height, rx=0))
        at += height
    told = counts_text(len(bar.rows))
    words = next((words for words in told if len(words) * CHARACTER < width - 6), told[-1])
    frame = "stuck" if bar.state is State.HANGS else "block"
    return [*parts, _rect(frame, x, y, width), label(x + 4, y + 13, words, width - 8)]


def _block_tip(scene: Scene, bar: Bar) -> str:
    kinds = kinds_text(scene.program, bar.rows)
    rank = int(scene.program.rank[bar.row])
    return f"rank {rank} · {kinds} · {_when(scene, bar)} · from {tip_of(scene.program, bar.row)}"


def _tip(scene: Scene, bar: Bar) -> str:
    return f"{tip_of(scene.program, bar.row)} · {_when(scene, bar)}"


def _when(scene: Scene, bar: Bar) -> str:
    """When a bar happens, and how much of that it waits."""
    if bar.state is State.NEVER:
        return "never starts"
    start = time_text(bar.start, scene.unit)
    if bar.state is State.HANGS:
        return f"hangs from {start} on"
    origin = f"{scene.origins[bar.lane.timing]}: " if len(scene.origins) > 1 else ""
    waits = f", waits until {time_text(bar.met, scene.unit)}" if bar.met > bar.start else ""
    return f"{origin}{start} to {time_text(bar.end, scene.unit)}{waits}"


def arrow_mark(scene: Scene, axis: Axis, arrow: Arrow) -> str:
    """A message, from the edge of one bar to that of the other."""
    x1, y1, x2, y2 = _ends(scene, axis, arrow)
    down = HEIGHT / 2 if y2 > y1 else -HEIGHT / 2
    y1 += down if arrow.source.bar is not None else 0
    y2 -= down if arrow.target.bar is not None else 0
    parts = [element("path", class_="arrow", d=_line(x1, y1, x2, y2))]
    if arrow.count > 1 and len(scene.arrows) <= FEW_ARROWS:
        x, y = (x1, y1) if arrow.source.bar is None else (x2, y2)
        parts.append(text(x + 5, y + 4, f"×{arrow.count:,}", class_="small dim halo"))
    return mark(arrow.tip, *parts)


def _ends(scene: Scene, axis: Axis, arrow: Arrow) -> tuple[float, float, float, float]:
    shown = arrow.source.bar or arrow.target.bar
    near = axis.middle(shown) if shown is not None else axis.top
    x1, y1 = spot_at(scene, axis, arrow.source, near)
    x2, y2 = spot_at(scene, axis, arrow.target, near)
    return x1, y1, x2, y2


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"


def band_mark(axis: Axis, band: Band) -> str:
    """A collective: a tint over its members, and a spine with a dot on each of them."""
    heights = sorted(axis.middle(bar) for bar in band.bars)
    x1, x2 = axis.x(band.start), axis.x(band.end)
    at = max(x2 - 7 - 6 * band.slot, (x1 + x2) / 2)
    low, high = heights[0] - TRACK / 2, heights[-1] + TRACK / 2
    width = max(x2 - x1 - 1, 1.0)
    tint = element("rect", class_="band", x=x1, y=low, width=width, height=high - low)
    return mark(
        f"{len(band.bars)} members shown · {band.tip}",
        *([tint] if not band.flies else []),
        element("path", class_="spine", d=_line(at, low + 2, at, high - 2)),
        class_="call",
    )


def wait_mark(scene: Scene, axis: Axis, turn: int, arrow: Arrow) -> str:
    """One wait of a deadlock, with its number in the ring."""
    x1, y1, x2, y2 = _ends(scene, axis, arrow)
    bend = x1 + max(abs(y2 - y1) * 0.08, 14)
    path = f"M{number(x1)} {number(y1)}C{number(bend)} {number(y1)} {number(bend)} {number(y2)} "
    return mark(
        f"{turn}: {arrow.tip}",
        element("path", class_="ring", d=f"{path}{number(x2)} {number(y2)}"),
        element("circle", class_="dot", cx=x1, cy=y1, r=8),
        text(x1, y1 + 4, str(turn), class_="no mid"),
    )
