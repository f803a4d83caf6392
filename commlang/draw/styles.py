"""How each kind of event looks: a colour, and a sign or a pattern that says the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.draw.bars import State
from commlang.draw.svg import CHARACTER, element, text
from commlang.operations import Kind

if TYPE_CHECKING:
    from commlang.draw.scene import Scene

STYLE = """\
.m{fill:var(--message);stroke:var(--message)}.r{fill:var(--recv);stroke:var(--recv)}
.c{fill:var(--collective);stroke:var(--collective)}.k{fill:var(--compute);stroke:var(--compute)}
.l{fill:var(--local);stroke:var(--local)}.w{fill:var(--wait);stroke:var(--wait)}
.b{stroke-width:0}.idle{fill-opacity:.3}.fly{fill-opacity:.3;stroke-width:1}
.block{fill:none;stroke:var(--ink);stroke-dasharray:3 2}
.stuck{fill:none;stroke:var(--alarm);stroke-width:2}
.ghost{fill:none;stroke:var(--dim);stroke-dasharray:2 3}.hatch{fill:url(#cl-hatch)}
.on{fill:var(--on-light)}.m~.on{fill:var(--on)}.fly~.on,.idle~.on.wide,.ghost~.on{fill:var(--ink)}
.arrow{stroke:var(--ink);stroke-width:1.1;fill:none;marker-end:url(#cl-head)}
.scale{stroke:var(--ink);stroke-dasharray:1 3}
.stop,.ring{stroke:var(--alarm);fill:none}.stop{stroke-dasharray:6 4}
.ring{stroke-width:2;marker-end:url(#cl-alarm)}.dot{fill:var(--alarm)}.no{fill:var(--paper)}
.other{fill:var(--paper);stroke:var(--rule)}.halo{stroke:var(--paper);stroke-width:4;paint-order:stroke}
.band{fill:var(--collective);fill-opacity:var(--tint)}.spine{stroke:var(--collective);stroke-width:2}
"""
DEFINITIONS = """\
<defs><pattern id="cl-hatch" width="6" height="6" patternUnits="userSpaceOnUse" \
patternTransform="rotate(45)"><path d="M0 0V6" stroke="var(--ink)" stroke-opacity=".45" \
stroke-width="2"/></pattern><marker id="cl-head" viewBox="0 0 8 8" refX="7" refY="4" \
markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8Z" fill="var(--ink)"/></marker>\
<marker id="cl-alarm" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" \
orient="auto"><path d="M0 0L8 4L0 8Z" fill="var(--alarm)"/></marker></defs>"""

NAMES = {
    "m": "send →",
    "r": "recv ←",
    "c": "collective",
    "k": "compute, extern",
    "l": "copy, add, fill",
    "w": "wait",
}


def family(kind: int) -> str:
    """The class of a kind of event."""
    match Kind(kind):
        case Kind.SEND:
            return "m"
        case Kind.RECV:
            return "r"
        case Kind.COMPUTE | Kind.EXTERN:
            return "k"
        case Kind.WAIT:
            return "w"
        case other:
            return "c" if other.is_collective else "l"


def legend(scene: Scene, x: float, y: float) -> tuple[list[str], float]:
    """What signs mean, of those that the scene has, in a line; and where the line ends."""
    parts: list[str] = []
    for sample, words in _entries(scene):
        parts.append(
            element("g", *sample, transform=f"translate({round(x, 1)} {round(y - 10, 1)})")
        )
        parts.append(text(x + 28, y, words))
        x += 28 + len(words) * CHARACTER + 16
    return parts, x


def _entries(scene: Scene) -> list[tuple[list[str], str]]:
    program, bars = scene.program, scene.bars
    rows = np.concatenate([bar.rows for bar in bars]) if bars else np.zeros(0, dtype=np.int64)
    present = {family(kind) for kind in np.unique(program.kind[rows]).tolist()}
    found = [([_box(f"b {key}")], words) for key, words in NAMES.items() if key in present]
    ends = [bar for bar in bars if bar.state is State.ENDS]
    if any(bar.met > bar.start for bar in ends) or scene.ring:
        found.append(([_box("b idle l"), _box("hatch")], "not all are there yet"))
    if any(program.site_of(bar.row).asynchronous for bar in ends if not bar.is_block):
        found.append(([_box("b fly k", rx=6)], "in flight (async)"))
    if any(bar.is_block for bar in bars):
        found.append(([_box("block")], "many events"))
    if scene.arrows:
        found.append(([element("path", class_="arrow", d="M0 6H22")], "message"))
    if scene.bands:
        found.append(([_box("band"), element("path", class_="spine", d="M11 0V12")], "one call"))
    if scene.critical.any():
        found.append(([element("rect", class_="alarm", y=5, width=22, height=3)], "critical path"))
    if scene.stops is not None:
        found.append(([_box("stuck")], "hangs"))
    if any(bar.state is State.NEVER for bar in bars):
        found.append(([_box("ghost")], "never starts"))
    if scene.ring:
        found.append(([element("path", class_="ring", d="M0 6H20")], "waits for"))
    return found


def _box(names: str, rx: int = 2) -> str:
    return element("rect", class_=names, width=22, height=12, rx=rx)
