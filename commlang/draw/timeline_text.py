"""The timeline as text for a terminal: lanes cut into staves that fit its width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw.bars import State
from commlang.draw.scene import make_scene
from commlang.draw.styles import family
from commlang.draw.told import lane_name, said, subtitle
from commlang.draw.words import STEPS, counts_text, name_of, short_name, time_text

if TYPE_CHECKING:
    from commlang.draw.bars import Bar
    from commlang.draw.scene import Scene
    from commlang.draw.subject import Subject

WIDTH = 100
"""Columns of a stave."""
ROOM = 640
WIDE_CELL, CELL = 18, 6
"""Columns of a step where few are enough for all, and else."""
FRAMES = {"m": "[]", "r": "[]", "c": "{}", "k": "()", "l": "<>", "w": "~~"}
KEYS = {
    "m": "[send, recv]",
    "c": "{collective}",
    "k": "(compute, extern)",
    "l": "<copy, add, fill>",
    "w": "~wait~",
    "idle": ".... not all are there yet",
    "block": "|many events|",
    "hangs": "!! hangs",
    "never": "?never starts?",
}


def text(subject: Subject) -> str:
    """The timeline of a subject, each lane with a line for each of its tracks."""
    scene = make_scene(subject, ROOM)
    names = [lane_name(scene, at) for at in range(len(scene.lanes))]
    margin = max([*map(len, names), 4]) + 2
    cell = _cell(scene, WIDTH - margin)
    last = max([scene.last, *(bar.end for bar in scene.bars)])
    columns = max(round(scene.scale.cell(last) * cell), 1)
    lines = _lines(scene, cell, columns)
    stave = (WIDTH - margin) // cell * cell
    parts = [subject.title, subtitle(scene), "  ".join(_keys(scene)), ""]
    for start in range(0, columns, stave):
        stop = min(start + stave, columns)
        parts += [*_stave(scene, names, lines, margin, cell, start, stop), ""]
    return "\n".join(map(plain, [*parts, *said(scene)])).rstrip("\n") + "\n"


def plain(line: str) -> str:
    """A line without what a terminal might take for a command."""
    return "".join(c if c.isprintable() else "�" for c in line)


def _cell(scene: Scene, width: int) -> int:
    """Columns of a cell: what the narrowest names need, or more if all fits then."""
    cells = scene.scale.cell(max([scene.last, *(bar.end for bar in scene.bars)]))
    least = max(CELL, len(str(scene.program.world - 1)) + 3) if scene.unit == STEPS else 2
    return max(least, min(WIDE_CELL, int(width / max(cells, 1))))


def _lines(scene: Scene, cell: int, columns: int) -> dict[int, list[list[str]]]:
    """The characters of each lane's tracks."""
    found = {id(lane): [[" "] * columns for _ in range(lane.tracks)] for lane in scene.lanes}
    for bar in scene.bars:
        low, met, high = (
            min(round(scene.scale.cell(time) * cell), columns)
            for time in (bar.start, bar.met, bar.end)
        )
        line = found[id(bar.lane)][bar.track]
        high = max(high, low + 1)
        line[low:high] = _drawn(scene, bar, min(met, high) - low, high - low)[: columns - low]
    return found


def _drawn(scene: Scene, bar: Bar, idle: int, width: int) -> str:
    """A bar in so many characters, of which the first `idle` wait."""
    program = scene.program
    left, right = FRAMES[family(int(program.kind[bar.row]))]
    names = [name_of(program, bar.row).replace(" → ", "→").replace(" ← ", "←")]
    names.append(short_name(program, bar.row))
    if bar.is_block:
        left, right = "||"
        names = counts_text(len(bar.rows))
    if bar.state is State.NEVER:
        left, right, idle = "?", "?", 0
    if width < 4:
        return (left + " " * (width - 2) + right)[:width]
    room = width - 2
    name = next((name for name in names if len(name) <= room), names[-1][: room - 1] + "…")
    body = ("." * max(idle - 1, 0)).ljust(room)[:room]
    at = idle - 1 if idle > 0 and len(name) <= room - idle + 1 else 0
    if bar.state is State.HANGS:
        right = "!"
        body = body[: room - 1] + "!" if room > len(name) else body
    return left + body[:at] + name + body[at + len(name) :] + right


def _stave(
    scene: Scene,
    names: list[str],
    lines: dict[int, list[list[str]]],
    margin: int,
    cell: int,
    start: int,
    stop: int,
) -> list[str]:
    parts = [_ruler(scene, margin, cell, start, stop)]
    gaps = list(scene.fold.gaps)
    for lane, name in zip(scene.lanes, names, strict=True):
        while gaps and gaps[0].first < lane.rank:
            parts.append(" " * margin + f"… {gaps.pop(0).words}")
        for track, line in enumerate(lines[id(lane)]):
            head = name if not track else ""
            shown = f"{head:<{margin}}{''.join(line[start:stop])}".rstrip()
            parts += [shown] if shown else []
    return [*parts, *(" " * margin + f"… {gap.words}" for gap in gaps)]


def _ruler(scene: Scene, margin: int, cell: int, start: int, stop: int) -> str:
    steps = scene.unit == STEPS
    line = ("step" if steps else "time").ljust(margin)
    end = scene.last if scene.stops is None else scene.stops
    for column in range(start, stop, cell if steps else 6 * cell):
        time = scene.scale.time(column / cell)
        if time > end:
            break
        told = f"{time:.0f}" if steps else time_text(time, scene.unit)
        line = line.ljust(margin + column - start) + told
    return line.rstrip()


def _keys(scene: Scene) -> list[str]:
    """What the frames mean, of those that are there."""
    bars = scene.bars
    present = {family(int(scene.program.kind[bar.row])) for bar in bars if not bar.is_block}
    present = {"m" if key == "r" else key for key in present}
    signs = {
        "idle": any(bar.met > bar.start and bar.state is State.ENDS for bar in bars),
        "block": any(bar.is_block for bar in bars),
        "hangs": any(bar.state is State.HANGS for bar in bars),
        "never": any(bar.state is State.NEVER for bar in bars),
    }
    present |= {key for key, there in signs.items() if there}
    return [words for key, words in KEYS.items() if key in present]
