"""The topology as SVG: groups in groups, switches above them, links as wide as they are busy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from commlang.draw.svg import CHARACTER, document, element, fitted, mark, number, text
from commlang.draw.topology import TREES, child_wire, leaf_wire, make_load, peer_wires
from commlang.draw.topology_blocks import BAR, BETWEEN, GAP, HEAD, PAD, WIRES, make_block
from commlang.draw.topology_grid import grid_marks
from commlang.draw.topology_wires import STYLE, legend, spread, straight_mark, wire_mark

if TYPE_CHECKING:
    from commlang.draw.subject import Subject
    from commlang.draw.topology import Load
    from commlang.draw.topology_blocks import Block

MARGIN, TOP = 14.0, 92.0


def svg(subject: Subject) -> str:
    """The machine of a subject with the traffic of its program."""
    load = make_load(subject)
    block = make_block(load, len(load.tiers) - 1, 0)
    said = [load.told(), load.bottleneck()]
    notes = ["A number without an arrow is as much each way."]
    notes += [load.algorithms] if load.algorithms else []
    if block.shown < load.world:
        notes.append(f"{block.shown:,} of {load.world:,} devices are shown.")
    keys, ends = legend(load, MARGIN, 76)
    right = max(
        MARGIN + block.width,
        ends,
        560.0,
        *(len(line) * CHARACTER + MARGIN for line in (*said, *notes)),
    )
    foot = TOP + block.height + 22
    body = [
        text(MARGIN, 22, fitted(subject.title, right / 8.2 * CHARACTER), class_="title"),
        text(MARGIN, 40, said[0], class_="dim"),
        text(MARGIN, 56, said[1], class_="alarm" if load.worst >= 0 else "dim"),
        *keys,
        *_block(load, block, MARGIN, TOP),
        *[text(MARGIN, foot + 16 * at, note, class_="dim") for at, note in enumerate(notes)],
    ]
    height = foot + 16 * len(notes)
    return document(right + MARGIN, height, body, title=subject.title, style=STYLE)


def _block(load: Load, block: Block, x: float, y: float) -> list[str]:
    """A block with its upper left corner at x, y."""
    if block.tier < 0:
        size = {"x": x, "y": y, "width": block.width, "height": block.height}
        name = f"rank {block.number:,}"
        words = text(x + block.width / 2, y + 17, name, class_="mid")
        return [
            mark(
                f"{name} on device {block.number}",
                element("rect", class_="box", rx=4, **size),
                words,
            )
        ]
    level = load.tiers[block.tier].level
    frame = {"x": x, "y": y, "width": block.width, "height": block.height}
    parts = [
        element("rect", class_="frame", rx=6, **frame),
        text(x + PAD, y + 13, f"{level.name} {block.number}", class_="small dim"),
    ]
    if block.cells:
        return [*parts, *grid_marks(load, block, x + PAD, y + HEAD)]
    foot = y + block.height - PAD
    middles, insides = _children(load, block, x + PAD, foot)
    top = foot - max(child.height for child in block.children)
    if level.kind in TREES or level.kind == "bus":
        return [*parts, *_switches(load, block, middles, x, y + HEAD, top), *insides]
    return [*parts, *_peers(load, block, middles, top), *insides]


def _children(load: Load, block: Block, x: float, foot: float) -> tuple[list[float], list[str]]:
    """The middles of the children that are shown, and their blocks, all on one line."""
    middles: list[float] = []
    parts: list[str] = []
    for child, hidden in zip(block.children, block.hidden, strict=True):
        parts += _block(load, child, x, foot - child.height)
        middles.append(x + child.width / 2)
        x += child.width + BETWEEN
        if hidden:
            words = f"⋯ {hidden:,} more"
            parts.append(text(x - BETWEEN / 2 + GAP / 2, foot - 9, words, class_="dim small mid"))
            x += GAP
    return middles, parts


def _switches(
    load: Load, block: Block, middles: list[float], x: float, y: float, top: float
) -> list[str]:
    """The switch of a group, of trees its leaf switches too, and the wires of the children."""
    tier = load.tiers[block.tier]
    name, first = tier.level.name, block.number * tier.count
    kinds = {"rails": "rails", "bus": "bus", "fat_tree": "switches"}
    kind = kinds.get(tier.level.kind, "switch")
    planes = f" × {tier.planes}" if tier.planes > 1 else ""
    words = f"{name} {block.number}{'' if name == kind else f' {kind}'}{planes}"
    parts = [_bar(words, x + PAD, x + block.width - PAD, y)]
    foot = y + BAR
    if tier.leaves > 1:
        foot += WIRES + BAR
        parts += _leaves(load, block, middles, y, f"leaf{planes}")
    for place, middle in zip(block.places, middles, strict=True):
        found = child_wire(load, block.tier, first + place)
        parts.append(straight_mark(load, found, middle, top, foot))
    return parts


def _leaves(load: Load, block: Block, middles: list[float], y: float, name: str) -> list[str]:
    """Leaf switches over those of their children that are shown."""
    tier = load.tiers[block.tier]
    below: dict[int, list[float]] = {}
    for place, middle in zip(block.places, middles, strict=True):
        below.setdefault(place // (tier.level.leaf or tier.count), []).append(middle)
    parts: list[str] = []
    for leaf, over in below.items():
        middle, level = (over[0] + over[-1]) / 2, y + BAR + WIRES
        words = f"{name} {leaf}" if "×" not in name else name.replace("leaf", f"leaf {leaf}")
        parts.append(_bar(words, over[0] - 44, over[-1] + 44, level))
        found = leaf_wire(load, block.tier, block.number, leaf)
        parts.append(straight_mark(load, found, middle, level, y + BAR))
    return parts


def _bar(name: str, left: float, right: float, y: float) -> str:
    size = {"x": left, "y": y, "width": right - left, "height": BAR}
    words = text((left + right) / 2, y + 13, fitted(name, right - left), class_="mid small")
    return mark(name, element("rect", class_="bar", rx=3, **size), words)


def _peers(load: Load, block: Block, middles: list[float], top: float) -> list[str]:
    """Wires from child to child as arcs above them, the farther the higher."""
    at = dict(zip(block.places, middles, strict=True))
    wires = peer_wires(load, block.tier, block.number, block.places)
    feet = spread(at, list(wires))
    parts: list[str] = []
    for pair, found in sorted(wires.items(), key=lambda item: item[1].seconds):
        a, b = feet[pair]
        rise = 14 + 34 * math.sqrt(abs(b - a) / max(middles[-1] - middles[0], 1.0))
        path = f"M{number(a)} {number(top)}C{number(a)} {number(top - rise)} "
        path += f"{number(b)} {number(top - rise)} {number(b)} {number(top)}"
        spot = (a + b) / 2, top - rise * 0.75 - 4
        few = found.label("→←") if len(block.places) <= 4 else []
        parts.append(wire_mark(load, found, path, few, spot, "mid"))
    return parts
