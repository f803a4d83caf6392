"""Which groups and devices of a machine a picture shows, and how much room each takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from commlang.draw.topology import TREES
from commlang.records import entity

if TYPE_CHECKING:
    from commlang.draw.topology import Load
    from commlang.topology.network import Tier

DEVICE_WIDTH, DEVICE_HEIGHT = 76.0, 26.0
BETWEEN, PAD, HEAD = 16.0, 10.0, 18.0
"""Room between children, inside a frame, and for its name."""
BAR, WIRES = 18.0, 52.0
"""Height of a switch, and of what hangs on it."""
GAP = 74.0
"""Width of what stands for children that are not shown."""
ALL_DEVICES, ALL_GROUPS = 8, 4
"""Children up to which all are shown, of devices and of groups."""
CELL = 40.0
"""Side of a device of a grid with its links."""
MOST_CELLS = 256


@entity
class Block:
    """A device (`tier` -1), or a group of the machine with the children that are shown of it.

    `hidden` counts the children left out after each that is shown. `cells` are the columns, rows
    and layers of a grid of devices, which has no children of its own.
    """

    tier: int
    number: int
    places: list[int]
    children: list[Block]
    hidden: list[int]
    width: float
    height: float
    cells: tuple[int, int, int] | None = None

    @property
    def shown(self) -> int:
        """How many devices are drawn."""
        if self.tier < 0:
            return 1
        if self.cells:
            return math.prod(self.cells)
        return sum(child.shown for child in self.children)


def make_block(load: Load, tier: int, number: int) -> Block:
    """A group of a tier with all that is shown in it; the whole machine is the last tier's 0."""
    if tier < 0:
        return Block(-1, number, [], [], [], DEVICE_WIDTH, DEVICE_HEIGHT)
    level = load.tiers[tier].level
    if tier == 0 and level.kind in ("ring", "torus"):
        return _grid(load, number)
    places, hidden = _shown(load, tier, number)
    first = number * level.count
    children = [make_block(load, tier - 1, first + place) for place in places]
    width = sum(child.width for child in children) + BETWEEN * (len(children) - 1)
    width += GAP * sum(count > 0 for count in hidden) + 2 * PAD
    height = max(child.height for child in children) + HEAD + PAD + WIRES
    if level.kind in TREES or level.kind == "bus":
        height += BAR
    if load.tiers[tier].leaves > 1:
        height += BAR + WIRES
    return Block(tier, number, places, children, hidden, width, height)


def _shown(load: Load, tier: int, number: int) -> tuple[list[int], list[int]]:
    """The places of the children to show, and how many are left out after each."""
    level = load.tiers[tier]
    used = math.ceil((load.world - number * level.count * level.inside) / level.inside)
    used = max(min(used, level.count), 1)
    if used <= (ALL_GROUPS if tier else ALL_DEVICES):
        return list(range(used)), [0] * used
    chosen = {0, 1, used - 1}
    device = worst_device(load)
    if device is not None and device // (level.inside * level.count) == number:
        chosen.add(device // level.inside % level.count)
    places = sorted(place for place in chosen if place < used)
    return places, [b - a - 1 for a, b in zip(places, [*places[1:], used], strict=True)]


def worst_device(load: Load) -> int | None:
    """A device beside the channel that is busy longest."""
    tier = next((t for t in load.tiers if 0 <= load.worst - t.first < t.channels), None)
    return None if tier is None else _child(tier, load.worst - tier.first) * tier.inside


def _child(tier: Tier, channel: int) -> int:
    """A child of a tier beside one of its channels."""
    match tier.level.kind:
        case "bus":
            return channel // tier.ports * tier.count
        case "full":
            row = channel // (tier.count - 1)
            group = row // (tier.count * tier.ports)
            return group * tier.count + row % tier.count
        case "ring" | "torus":
            return channel // (2 * len(tier.level.size)) // tier.ports
        case _ if channel < 2 * tier.inputs:
            return channel % tier.inputs // tier.ports
        case _:
            leaf = (channel - 2 * tier.inputs) % tier.uplinks // tier.planes
            group, place = divmod(leaf, tier.leaves)
            return group * tier.count + place * (tier.level.leaf or tier.count)


def _grid(load: Load, number: int) -> Block:
    """Devices of a ring or torus: columns, rows, and layers side by side, as many as fit."""
    sizes = [*load.tiers[0].level.size, 1, 1]
    columns, rows, layers = min(sizes[0], 16), min(sizes[1], 16), math.prod(sizes[2:])
    layers = max(min(layers, MOST_CELLS // (columns * rows)), 1)
    across = min(layers, max(1, 32 // columns))
    down = math.ceil(layers / across)
    width = across * (columns * CELL + BETWEEN) + 2 * PAD
    height = down * (rows * CELL + BETWEEN) + HEAD + PAD
    return Block(0, number, [], [], [], width, height, (columns, rows, layers))
