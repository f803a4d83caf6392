"""The channels of a machine by name, each from one node to another: for people and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.errors import CommlangError
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.topology.model import Machine
    from commlang.topology.network import Tier

MAX_NAMED = 1 << 22
"""Most channels that are named; more would be gigabytes."""


@record
class Resource:
    """A directed channel: bytes per second, its link class, and the nodes at its two ends.

    Nodes are `device 5`, a group by its level's name (`node 0`, which is also its switch), or a
    leaf switch (`cluster 0 leaf 2`). A bus is of both directions; its source and target are one.
    """

    name: str
    bandwidth: float
    link: int
    source: str
    target: str


def resources(machine: Machine) -> tuple[Resource, ...]:
    """All channels, numbered as in routes; raises CommlangError if there are too many."""
    network = machine.network
    if network.channels > MAX_NAMED:
        raise CommlangError(
            f"{machine.name} has {network.channels} channels, too many to name; "
            "take the part for a world, `machine.for_world(world)`"
        )
    found: list[Resource] = []
    inner = "device"
    for tier in network.tiers:
        widths = tier.capacities().tolist()
        ends = _ends(tier, inner)
        found += (
            Resource(name, width, tier.link, source, target)
            for width, (name, source, target) in zip(widths, ends, strict=True)
        )
        inner = tier.level.name
    return tuple(found)


def _ends(tier: Tier, inner: str) -> Iterator[tuple[str, str, str]]:
    """Name, source and target of each channel of a tier, in order."""
    match tier.level.kind:
        case "bus":
            yield from _buses(tier)
        case "full":
            yield from _mesh(tier, inner)
        case "ring" | "torus":
            yield from _grid(tier, inner)
        case _:
            yield from _tree(tier, inner)


def _told(source: str, target: str, port: str) -> tuple[str, str, str]:
    return f"{source} → {target}{port}", source, target


def _port(tier: Tier, port: int) -> str:
    return f", port {port}" if tier.ports > 1 else ""


def _buses(tier: Tier) -> Iterator[tuple[str, str, str]]:
    for group in range(tier.groups):
        for port in range(tier.ports):
            node = f"{tier.level.name} {group}"
            yield f"{node} bus{_port(tier, port)}", node, node


def _mesh(tier: Tier, inner: str) -> Iterator[tuple[str, str, str]]:
    for group in range(tier.groups):
        first = group * tier.count
        for port in range(tier.ports):
            for a in range(first, first + tier.count):
                for b in range(first, first + tier.count):
                    if a != b:
                        yield _told(f"{inner} {a}", f"{inner} {b}", _port(tier, port))


def _grid(tier: Tier, inner: str) -> Iterator[tuple[str, str, str]]:
    for child in range(tier.groups * tier.count):
        for port in range(tier.ports):
            stride = 1
            for extent in tier.sides:
                at = child % tier.count // stride % extent
                for way in (1, -1):
                    near = child + ((at + way) % extent - at) * stride
                    # Two devices are neighbours both ways round.
                    more = _port(tier, port) + (", down" if extent == 2 and way < 0 else "")
                    yield _told(f"{inner} {child}", f"{inner} {near}", more)
                stride *= extent


def _tree(tier: Tier, inner: str) -> Iterator[tuple[str, str, str]]:
    ups = [
        _told(f"{inner} {child}", _leaf(tier, child, port), _port(tier, port))
        for child in range(tier.groups * tier.count)
        for port in range(tier.ports)
    ]
    yield from ups
    yield from (_told(target, source, name.removeprefix(f"{source} → {target}"))
                for name, source, target in ups)  # fmt: skip
    if tier.uplinks:
        above = [
            (_switch(tier, group, leaf, plane), f"{tier.level.name} {group}")
            for group in range(tier.groups)
            for leaf in range(tier.leaves)
            for plane in range(tier.planes)
        ]
        yield from (_told(leaf, top, "") for leaf, top in above)
        yield from (_told(top, leaf, "") for leaf, top in above)


def _leaf(tier: Tier, child: int, port: int) -> str:
    """The switch that a port of a child leads into."""
    group, place = divmod(child, tier.count)
    return _switch(tier, group, place // (tier.level.leaf or tier.count), port)


def _switch(tier: Tier, group: int, leaf: int, plane: int) -> str:
    name = f"{tier.level.name} {group}"
    if tier.leaves > 1:
        name += f" leaf {leaf}"
    return f"{name} rail {plane}" if tier.planes > 1 else name
