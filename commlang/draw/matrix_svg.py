"""The matrix as SVG: a heat map, with what each rank sends and receives beside and below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw import heat
from commlang.draw.heat import DARK, Scale
from commlang.draw.matrix import make_matrix
from commlang.draw.svg import CHARACTER, document, element, fitted, mark, text
from commlang.draw.words import bytes_text

if TYPE_CHECKING:
    from commlang.draw.matrix import Matrix
    from commlang.draw.subject import Subject

MARGIN, TOP = 14, 104
LARGE, SMALL, MIDDLE = 52, 12, 20
"""Sides of a cell: with its number in it, of 64 ranks, of 32 blocks."""
FEW = 16
"""Ranks up to which numbers stand in the cells."""
BAR = 60
"""The longest bar of what a rank sends or receives."""
NARROWEST = 560.0
STYLE = f"{heat.STYLE}.cell{{fill:var(--lane)}}.sum{{fill:var(--local)}}\n"


def svg(subject: Subject) -> str:
    """The matrix of a subject."""
    matrix = make_matrix(subject)
    side = _side(matrix)
    scale = Scale.of(matrix.bytes.reshape(-1).tolist())
    left = MARGIN + max(len(matrix.name(at)) for at in range(matrix.size)) * CHARACTER + 34
    edge, bottom = left + matrix.size * side, TOP + matrix.size * side
    keys, ends = heat.legend(scale, MARGIN, 62)
    told, algorithms = matrix.told(), matrix.algorithms
    right = max(
        edge + BAR + 80, ends, NARROWEST, *(len(w) * CHARACTER + MARGIN for w in (told, algorithms))
    )
    notes = [algorithms] if algorithms else []
    foot = bottom + BAR + 42
    body = [
        text(MARGIN, 22, fitted(subject.title, right / 8.2 * CHARACTER), class_="title"),
        text(MARGIN, 40, told, class_="dim"),
        *keys,
        element(
            "rect", class_="cell", x=left, y=float(TOP), width=edge - left, height=bottom - TOP
        ),
        *_names(matrix, side, left),
        *_cells(matrix, scale, side, left),
        *_sums(matrix, side, left, edge, bottom),
        *[text(MARGIN, foot, note, class_="dim") for note in notes],
    ]
    return document(right + MARGIN, foot + 14, body, title=subject.title, style=STYLE)


def _size(side: float) -> dict[str, float]:
    return {"width": side, "height": side}


def _side(matrix: Matrix) -> float:
    if matrix.size <= FEW:
        return float(LARGE)
    return float(MIDDLE if matrix.size <= 32 else SMALL)


def _names(matrix: Matrix, side: float, left: float) -> list[str]:
    """Ranks beside the rows and above the columns, as many as there is room for."""
    parts = [
        text(MARGIN, TOP - 8, "from", class_="dim"),
        text(left, TOP - 22, "to", class_="dim"),
    ]
    step = 1 if side >= 14 else 4
    wide = max(len(matrix.name(at)) for at in range(matrix.size)) * CHARACTER + 4
    across = max(1, -(-int(wide) // int(side)))
    for at in range(matrix.size):
        name, middle = matrix.name(at), (at + 0.5) * side
        if at % step == 0:
            parts.append(text(left - 6, TOP + middle + 4, name, class_="end small"))
        if at % across == 0:
            parts.append(text(left + middle, TOP - 6, name, class_="mid small"))
    return parts


def _cells(matrix: Matrix, scale: Scale, side: float, left: float) -> list[str]:
    parts: list[str] = []
    for (row, column), by in sorted(matrix.tips.items()):
        size, count = int(matrix.bytes[row, column]), int(matrix.messages[row, column])
        x, y, shade = left + column * side, TOP + row * side, scale.shade(size)
        box = {"x": x + 0.5, "y": y + 0.5, **_size(side - 1)}
        drawn = [element("rect", class_="heat", **box, fill_opacity=f"{shade:g}")]
        if side == LARGE:
            over = "mid over" if shade >= DARK else "mid"
            words = bytes_text(size).replace(" ", "\u2009")
            drawn.append(text(x + side / 2, y + side / 2 + 4, words, class_=over))
        ends = f"{matrix.name(row)} → {matrix.name(column)}"
        tip = f"{ends}: {bytes_text(size)} in {count:,} messages; {by}"
        parts.append(mark(tip, *drawn))
    return parts


def _sums(matrix: Matrix, side: float, left: float, edge: float, bottom: float) -> list[str]:
    """Bars of what each row sends and each column receives, with their numbers where they fit."""
    sent, received = matrix.bytes.sum(axis=1).tolist(), matrix.bytes.sum(axis=0).tolist()
    most = max([*sent, *received, 1])
    thick = min(side - 2, 16.0)
    parts = [
        text(edge + 8, TOP - 6, "sends", class_="dim small"),
        text(left - 6, bottom + 16, "receives", class_="dim small end"),
    ]
    for at, (out, come) in enumerate(zip(sent, received, strict=True)):
        middle = (at + 0.5) * side
        long, tall = out / most * BAR, come / most * BAR
        y, x = TOP + middle, left + middle
        row = element(
            "rect", class_="sum", x=edge + 8, y=y - thick / 2, width=float(long), height=thick
        )
        column = element(
            "rect", class_="sum", x=x - thick / 2, y=bottom + 8, width=thick, height=float(tall)
        )
        words = [bytes_text(out), bytes_text(come)]
        beside = [text(edge + 14 + long, y + 4, words[0])] if side >= 14 else []
        below = [text(x, bottom + 22 + tall, words[1], class_="mid")] if side == LARGE else []
        parts.append(mark(f"{matrix.name(at)} sends {words[0]}", row, *beside))
        parts.append(mark(f"{matrix.name(at)} receives {words[1]}", column, *below))
    return parts
