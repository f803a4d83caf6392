"""A ring or torus of devices: a grid for each layer, with the links between neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw.svg import element, mark, number, text
from commlang.draw.topology import peer_wires
from commlang.draw.topology_blocks import BETWEEN, CELL
from commlang.draw.topology_wires import style_of, width_of

if TYPE_CHECKING:
    from commlang.draw.topology import Load, Wire
    from commlang.draw.topology_blocks import Block

SQUARE = 24.0
"""Side of a device; the rest of its cell is for links."""
STUB = 5.0


def grid_marks(load: Load, block: Block, x: float, y: float) -> list[str]:
    """The devices of a grid and their links, the upper left corner at x, y."""
    places = _places(load, block, x, y)
    wires = peer_wires(load, 0, block.number, list(places))
    parts = [
        _link(load, block, found, places, *pair)
        for pair, found in sorted(wires.items(), key=lambda item: item[1].seconds)
    ]
    first = block.number * load.tiers[0].count
    for place, (left, top) in places.items():
        size = {"x": left, "y": top, "width": SQUARE, "height": SQUARE}
        words = text(left + SQUARE / 2, top + 16, str(first + place), class_="mid small")
        tip = f"rank {first + place} on device {first + place}"
        parts.append(mark(tip, element("rect", class_="box", rx=3, **size), words))
    return parts


def _places(load: Load, block: Block, x: float, y: float) -> dict[int, tuple[float, float]]:
    """The upper left corners of the devices that are shown, by their place in the group."""
    assert block.cells is not None
    columns, rows, layers = block.cells
    sizes = [*load.tiers[0].level.size, 1]
    plane = sizes[0] * sizes[1]
    across = max(1, int((block.width - BETWEEN) // (columns * CELL + BETWEEN)))
    found: dict[int, tuple[float, float]] = {}
    for layer in range(layers):
        left = x + layer % across * (columns * CELL + BETWEEN)
        top = y + layer // across * (rows * CELL + BETWEEN)
        for row in range(rows):
            for column in range(columns):
                place = column + row * sizes[0] + layer * plane
                found[place] = left + column * CELL + 8, top + row * CELL + 8
    return found


def _link(
    load: Load,
    block: Block,
    found: Wire,
    places: dict[int, tuple[float, float]],
    a: int,
    b: int,
) -> str:
    """A link to the next column or row; around the edge or to another layer, stubs at both ends."""
    sizes = [*load.tiers[0].level.size, 1]
    (x1, y1), (x2, y2) = places[a], places[b]
    half = SQUARE / 2
    if b - a == 1 and b // sizes[0] == a // sizes[0]:
        path = f"M{number(x1 + SQUARE)} {number(y1 + half)}H{number(x2)}"
    elif b - a == sizes[0] and b // (sizes[0] * sizes[1]) == a // (sizes[0] * sizes[1]):
        path = f"M{number(x1 + half)} {number(y1 + SQUARE)}V{number(y2)}"
    elif b // sizes[0] == a // sizes[0]:
        path = f"M{number(x1)} {number(y1 + half)}h-{STUB:g}"
        path += f"M{number(x2 + SQUARE)} {number(y2 + half)}h{STUB:g}"
    elif b // (sizes[0] * sizes[1]) == a // (sizes[0] * sizes[1]):
        path = f"M{number(x1 + half)} {number(y1)}v-{STUB:g}"
        path += f"M{number(x2 + half)} {number(y2 + SQUARE)}v{STUB:g}"
    else:
        path = f"M{number(x1 + SQUARE)} {number(y1)}l{STUB:g} -{STUB:g}"
        path += f"M{number(x2)} {number(y2 + SQUARE)}l-{STUB:g} {STUB:g}"
    line = {"class_": style_of(found), "stroke_width": width_of(load, found.seconds)}
    return mark(found.tip, element("path", d=path, **line))
