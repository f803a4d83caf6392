"""The timeline in the DOT language of Graphviz: events in lanes, and what ties them.

https://graphviz.org/doc/info/lang.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw.bars import State
from commlang.draw.scene import make_scene
from commlang.draw.styles import family
from commlang.draw.told import lane_name, said, subtitle
from commlang.draw.words import kinds_text, name_of

if TYPE_CHECKING:
    from commlang.draw.bars import Bar
    from commlang.draw.links import Arrow, Spot
    from commlang.draw.scene import Scene
    from commlang.draw.subject import Subject

ROOM = 320
COLOURS = {
    "m": "#56b4e9",
    "r": "#9ad1f2",
    "c": "#e69f00",
    "k": "#66c2a5",
    "l": "#cccccc",
    "w": "#f0e442",
}
"""Light enough for black text; see `commlang.draw.svg` for the palette."""


def dot(subject: Subject) -> str:
    """The timeline of a subject; a message leads from bar to bar, calls of one collective too."""
    scene = make_scene(subject, ROOM)
    number = {id(bar): at for at, bar in enumerate(scene.bars)}
    parts = [
        "digraph timeline {",
        "  rankdir=LR; newrank=true; splines=true;",
        f"  label={quoted(_caption(subject, scene))}; labelloc=t; labeljust=l;",
        '  node [shape=box, style=filled, fontname="sans-serif", fontsize=10, height=0.25];',
        '  edge [fontname="sans-serif", fontsize=9];',
    ]
    for at in range(len(scene.lanes)):
        parts += _lane(scene, at, number)
    hidden: dict[str, str] = {}
    ties = [_tie(scene, arrow, number, hidden, "constraint=false") for arrow in scene.arrows]
    ring = [
        _tie(
            scene, arrow, number, hidden, f'color="#cc0044", penwidth=2, label="{turn}: waits for"'
        )
        for turn, arrow in enumerate(scene.ring, 1)
    ]
    parts += [f"  {name} [label={quoted(words)}, style=dashed];" for name, words in hidden.items()]
    parts += [*ties, *_calls(scene, number), *ring, "}"]
    return "\n".join(parts) + "\n"


def quoted(words: str) -> str:
    """A string of DOT; a backslash would start an escape of a label."""
    escaped = words.replace("\\", "\\\\").replace('"', '\\"')
    lines = ["".join(c if c.isprintable() else "�" for c in line) for line in escaped.split("\n")]
    return '"' + "\\l".join(lines) + '"'


def _caption(subject: Subject, scene: Scene) -> str:
    return "\n".join([subject.title, subtitle(scene), *said(scene), ""])


def _lane(scene: Scene, at: int, number: dict[int, int]) -> list[str]:
    """A lane's events, in a chain that keeps their order."""
    lane = scene.lanes[at]
    bars = sorted(
        (bar for bar in scene.bars if bar.lane is lane), key=lambda bar: (bar.start, bar.track)
    )
    nodes = [f"  lane{at} [label={quoted(lane_name(scene, at))}, shape=plaintext, style=solid];"]
    nodes += [f"  b{number[id(bar)]} [{_look(scene, bar)}];" for bar in bars]
    chain = " -> ".join([f"lane{at}", *(f"b{number[id(bar)]}" for bar in bars)])
    return [*nodes, f"  {chain} [weight=9, style=dotted, arrowhead=none];"] if bars else nodes


def _look(scene: Scene, bar: Bar) -> str:
    program = scene.program
    words = kinds_text(program, bar.rows) if bar.is_block else name_of(program, bar.row)
    look = f'label={quoted(words)}, fillcolor="{COLOURS[family(int(program.kind[bar.row]))]}"'
    if bar.state is State.HANGS:
        return f'{look}, color="#cc0044", penwidth=2'
    return f"{look}, style=dashed" if bar.state is State.NEVER else look


def _tie(
    scene: Scene, arrow: Arrow, number: dict[int, int], hidden: dict[str, str], look: str
) -> str:
    ends = [_end(scene, spot, number, hidden) for spot in (arrow.source, arrow.target)]
    many = f', label="×{arrow.count}"' if arrow.count > 1 and "label" not in look else ""
    return f"  {ends[0]} -> {ends[1]} [{look}{many}];"


def _end(scene: Scene, spot: Spot, number: dict[int, int], hidden: dict[str, str]) -> str:
    if spot.bar is not None:
        return f"b{number[id(spot.bar)]}"
    for at, gap in enumerate(scene.fold.gaps):
        if gap.first <= spot.rank <= gap.last:
            hidden[f"gap{at}"] = gap.words
            return f"gap{at}"
    hidden[f"rank{spot.rank}"] = f"rank {spot.rank}"
    return f"rank{spot.rank}"


def _calls(scene: Scene, number: dict[int, int]) -> list[str]:
    """The members of each collective, tied to one another."""
    found: list[str] = []
    for band in scene.bands:
        names = " -> ".join(f"b{number[id(bar)]}" for bar in band.bars)
        found.append(f'  {names} [dir=none, constraint=false, color="#d55e00", penwidth=2];')
    return found
