"""How wires look: as wide as they are busy, and the busiest marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw.svg import CHARACTER, element, mark, number, text
from commlang.draw.words import time_text

if TYPE_CHECKING:
    from commlang.draw.topology import Load, Wire

THIN, THICK = 1.2, 7.0
STYLE = """\
.wire{stroke:var(--message);fill:none;stroke-linecap:butt}.wire.idle{stroke:var(--rule)}
.wire.worst{stroke:var(--alarm)}.frame{fill:none;stroke:var(--rule)}
.box{fill:var(--lane);stroke:var(--dim)}.bar{fill:var(--rule)}
.halo{stroke:var(--paper);stroke-width:3;paint-order:stroke}
"""


def width_of(load: Load, seconds: float) -> str:
    """How wide the line of a wire is."""
    return number(THIN + (THICK - THIN) * load.busy(seconds))


def style_of(found: Wire) -> str:
    """The classes of a wire's line."""
    return "wire" + (" worst" if found.worst else "" if found.seconds else " idle")


def straight_mark(load: Load, found: Wire, x: float, y1: float, y2: float) -> str:
    """A wire straight down or up, with its bytes on the right of it."""
    spot = x + THICK * load.busy(found.seconds) / 2 + 4, (y1 + y2) / 2 + 4
    path = f"M{number(x)} {number(y1)}V{number(y2)}"
    return wire_mark(load, found, path, found.label(), spot)


def wire_mark(
    load: Load, found: Wire, path: str, words: list[str], spot: tuple[float, float], where: str = ""
) -> str:
    """A wire along a path, with some lines of words at a spot."""
    style = {"class_": style_of(found), "stroke_width": width_of(load, found.seconds)}
    x, y = spot[0], spot[1] - 6 * (len(words) - 1)
    names = f"small halo {where}".strip()
    lines = [text(x, y + 12 * at, line, class_=names) for at, line in enumerate(words)]
    return mark(found.tip, element("path", d=path, **style), *lines)


def spread(
    at: dict[int, float], pairs: list[tuple[int, int]]
) -> dict[tuple[int, int], tuple[float, float]]:
    """Where each pair's arc begins and ends: side by side over a child, those to the left first."""
    ends: dict[int, list[tuple[float, tuple[int, int]]]] = {}
    for pair in pairs:
        for one, other in (pair, pair[::-1]):
            ends.setdefault(one, []).append((at[other], pair))
    place: dict[tuple[int, tuple[int, int]], float] = {}
    for child, found in ends.items():
        found.sort()
        step = min(16.0, 56.0 / len(found))
        for turn, (_, pair) in enumerate(found):
            place[child, pair] = at[child] + (turn - (len(found) - 1) / 2) * step
    return {pair: (place[pair[0], pair], place[pair[1], pair]) for pair in pairs}


def legend(load: Load, x: float, y: float) -> tuple[list[str], float]:
    """What lines mean; and where the legend ends."""
    longest = float(load.seconds[load.worst]) if load.worst >= 0 else 0.0
    entries = [("wire idle", 0.0, "not used")]
    if longest:
        entries += [
            ("wire", longest * part, f"busy {time_text(longest * part, 's')}") for part in (0.25, 1)
        ]
        entries.append(("wire worst", longest, "busiest"))
    parts: list[str] = []
    for names, seconds, words in entries:
        line = {"class_": names, "stroke_width": width_of(load, seconds)}
        parts.append(element("path", d=f"M{number(x + 2)} {number(y - 4)}h18", **line))
        parts.append(text(x + 28, y, words))
        x += 28 + len(words) * CHARACTER + 16
    return parts, x
