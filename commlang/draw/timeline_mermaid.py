"""The timeline as a sequence diagram of Mermaid, for READMEs and reviews.

https://mermaid.js.org/syntax/sequenceDiagram.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw.bars import State
from commlang.draw.scene import make_scene
from commlang.draw.styles import family
from commlang.draw.told import said, subtitle
from commlang.draw.words import bytes_of, bytes_text, kinds_text, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.draw.bars import Bar
    from commlang.draw.links import Arrow, Band
    from commlang.draw.scene import Scene
    from commlang.draw.subject import Subject

ROOM = 320
MOST_LINES = 400
"""GitHub draws no diagram of more than 50,000 characters (Mermaid's `maxTextSize`)."""

_CODES = {"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;"}


def mermaid(subject: Subject) -> str:
    """The timeline of a subject: messages as arrows, collectives and computing as notes."""
    scene = make_scene(subject, ROOM)
    lines = [words for _, words in sorted(_lines(scene), key=lambda line: line[0])]
    if len(lines) > MOST_LINES:
        scene.notes.append(f"{len(lines) - MOST_LINES:,} later messages and notes are left out.")
        lines = lines[:MOST_LINES]
    whole = ",".join(dict.fromkeys(_ends(scene)))
    parts = [
        "sequenceDiagram",
        f"    title {escaped(subject.title)}",
        *_participants(scene),
        *(f"    {line}" for line in lines),
        *(f"    {_wait(scene, turn, arrow)}" for turn, arrow in enumerate(scene.ring, 1)),
        *(f"    Note over {whole}: {escaped(note)}" for note in [*said(scene)[len(scene.ring) :]]),
        f"    %% {subtitle(scene)}",
    ]
    return "\n".join(parts) + "\n"


def escaped(words: str) -> str:
    """Text of a message or a note, with what Mermaid reads as its own as codes."""
    plain = "".join(c if c.isprintable() else " " for c in words)
    return "".join(_CODES.get(c, c) for c in plain).replace("%%", "%#37;")


def _participants(scene: Scene) -> list[str]:
    found = [(lane.rank, f"participant r{lane.rank} as rank {lane.rank}") for lane in scene.lanes]
    for at, gap in enumerate(scene.fold.gaps):
        found.append((gap.first, f"participant g{at} as {escaped(gap.words)}"))
    hidden = {spot.rank for a in [*scene.arrows, *scene.ring] for spot in (a.source, a.target)}
    hidden -= {lane.rank for lane in scene.lanes}
    outside = [rank for rank in hidden if _name(scene, rank).startswith("r")]
    found += [(rank, f"participant r{rank} as rank {rank} (not shown)") for rank in outside]
    return [f"    {line}" for line in dict.fromkeys(words for _, words in sorted(found))]


def _ends(scene: Scene) -> tuple[str, str]:
    return f"r{scene.lanes[0].rank}", f"r{scene.lanes[-1].rank}"


def _lines(scene: Scene) -> Iterator[tuple[tuple[float, int], str]]:
    """Lines with the times and ranks by which they are sorted."""
    for arrow in scene.arrows:
        yield (arrow.source.time, arrow.source.rank), _message(scene, arrow)
    for band in scene.bands:
        yield (band.start, band.bars[0].lane.rank), _call(scene, band)
    for bar in scene.bars:
        if bar.is_block or family(int(scene.program.kind[bar.row])) == "k":
            yield (bar.start, bar.lane.rank), _note(scene, bar)


def _message(scene: Scene, arrow: Arrow) -> str:
    words = f"{arrow.count:,} messages"
    if arrow.count == 1 and arrow.source.bar is not None:
        row = arrow.source.bar.row
        words = f"{scene.program.text(row)} {bytes_text(bytes_of(scene.program, row))}"
    elif arrow.count == 1:
        words = "message"
    return (
        f"{_name(scene, arrow.source.rank)}->>{_name(scene, arrow.target.rank)}: {escaped(words)}"
    )


def _call(scene: Scene, band: Band) -> str:
    ranks = sorted({bar.lane.rank for bar in band.bars})
    row = band.bars[0].row
    size = bytes_text(bytes_of(scene.program, row))
    who = "" if len(ranks) == len(scene.fold.shown) else f" of ranks {', '.join(map(str, ranks))}"
    words = f"{name_of(scene.program, row)}{who} {size}"
    return f"Note over r{ranks[0]},r{ranks[-1]}: {escaped(words)}"


def _note(scene: Scene, bar: Bar) -> str:
    program = scene.program
    words = kinds_text(program, bar.rows) if bar.is_block else name_of(program, bar.row)
    if bar.state is not State.ENDS:
        words = f"{words} {bar.state}"
    return f"Note over r{bar.lane.rank}: {escaped(words)}"


def _wait(scene: Scene, turn: int, arrow: Arrow) -> str:
    ends = f"{_name(scene, arrow.source.rank)}--x{_name(scene, arrow.target.rank)}"
    return f"{ends}: {turn}: {escaped(arrow.tip)}"


def _name(scene: Scene, rank: int) -> str:
    for at, gap in enumerate(scene.fold.gaps):
        if gap.first <= rank <= gap.last:
            return f"g{at}"
    return f"r{rank}"
