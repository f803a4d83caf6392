"""What a pattern puts on the channels of a machine, and which of it a picture shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.draw.matrix import algorithms_text
from commlang.draw.words import bytes_text, time_text
from commlang.errors import UsageError
from commlang.records import entity
from commlang.traffic import by_resource, traffic

if TYPE_CHECKING:
    from commlang.draw.subject import Subject
    from commlang.program.columns import Array
    from commlang.topology.model import Machine
    from commlang.topology.network import Tier

MOST_NAMED = 1 << 20
"""Channels of which the busiest is told by name; to name more takes seconds."""
TREES = ("switch", "rails", "fat_tree")
"""Kinds of levels whose children hang on a switch."""


@entity
class Load:
    """Bytes through each channel of a machine, and how long they keep it busy at full bandwidth.

    `machine` is cut to `world` devices. `worst` is the channel that
    is busy longest, -1 if none is used.
    """

    machine: Machine
    world: int
    bytes: Array
    seconds: Array
    worst: int
    total: int
    algorithms: str

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The machine's levels as numbers, innermost first."""
        return self.machine.network.tiers

    def busy(self, seconds: float) -> float:
        """A time as a part of the longest, 0 to 1."""
        return seconds / float(self.seconds[self.worst]) if self.worst >= 0 else 0.0

    def told(self) -> str:
        """What the picture shows, in a line."""
        return f"{self.machine.name}: the {bytes_text(self.total)} that ranks send, by link"

    def bottleneck(self) -> str:
        """The channel that is busy longest, in a line."""
        if self.worst < 0:
            return "No link is used."
        named = len(self.bytes) <= MOST_NAMED
        name = self.machine.resources[self.worst].name if named else f"channel {self.worst:,}"
        size, seconds = int(self.bytes[self.worst]), float(self.seconds[self.worst])
        rate = float(self.machine.capacities[self.worst]) / 1e9
        alike = int((self.seconds >= seconds * (1 - 1e-9)).sum()) - 1
        others = f" (as {alike:,} other{'s' * (alike > 1)})" if alike else ""
        return (
            f"Busiest: {name}, {bytes_text(size)} in {time_text(seconds, 's')} at {rate:.3g} GB/s"
            f"{others}."
        )


@entity
class Wire:
    """What lies between two nodes: bytes there and back, over as many ports as there are."""

    ends: tuple[str, str]
    there: int
    back: int
    seconds: float
    worst: bool
    link: str

    def label(self, arrows: str = "↑↓") -> list[str]:
        """`6 MiB` if as much goes either way, else `↑6 MiB` and `↓4 MiB`, what there is of them."""
        if self.there == self.back:
            return [bytes_text(self.there)] if self.there else []
        ways = zip(arrows, (self.there, self.back), strict=True)
        return [f"{arrow}{bytes_text(size)}" for arrow, size in ways if size]

    @property
    def tip(self) -> str:
        """The same in full."""
        one, other = self.ends
        busy = f", busy for {time_text(self.seconds, 's')}" if self.seconds else ""
        worst = ", the busiest link" if self.worst else ""
        return (
            f"{one} → {other}: {bytes_text(self.there)}, back: {bytes_text(self.back)} "
            f"· {self.link}{busy}{worst}"
        )


def make_load(subject: Subject) -> Load:
    """The load of a subject's machine; raises UsageError without one or if it is too small."""
    if subject.machine is None:
        from commlang.topology import machine_names

        known = ", ".join(machine_names())
        raise UsageError(
            f"the topology view needs a machine: give --topology, one of {known}, or a file"
        )
    program = subject.program
    machine = subject.machine.for_world(program.world)
    found = traffic(program)
    through = by_resource(found, machine)
    seconds = through / machine.capacities
    worst = int(np.argmax(seconds)) if len(seconds) and through.any() else -1
    return Load(
        machine, program.world, through, seconds, worst, found.total, algorithms_text(program)
    )


def wire(load: Load, tier: Tier, ends: tuple[str, str], there: Array, back: Array) -> Wire:
    """The wire of some channels one way and of others the other way."""
    channels = np.concatenate([there, back])
    return Wire(
        ends,
        int(load.bytes[there].sum()),
        int(load.bytes[back].sum()),
        float(load.seconds[channels].max(initial=0.0)),
        bool((channels == load.worst).any()),
        load.machine.links[tier.link].name,
    )


def child_wire(load: Load, number: int, child: int) -> Wire:
    """From a child (by its number among all of its level) up to its switch or bus."""
    tier = load.tiers[number]
    group = child // tier.count
    if tier.level.kind == "bus":
        bus = tier.first + group * tier.ports + np.arange(tier.ports)
        return wire(load, tier, (child_name(load, number, child), "bus"), bus, bus[:0])
    up = tier.first + child * tier.ports + np.arange(tier.ports)
    ends = child_name(load, number, child), f"{tier.level.name} {group}"
    return wire(load, tier, ends, up, up + tier.inputs)


def leaf_wire(load: Load, number: int, group: int, leaf: int) -> Wire:
    """From a leaf switch, of rails from all that stand side by side, to what joins the leaves."""
    tier = load.tiers[number]
    first = tier.first + 2 * tier.inputs + (group * tier.leaves + leaf) * tier.planes
    up = first + np.arange(tier.planes)
    ends = f"{tier.level.name} {group} leaf {leaf}", f"{tier.level.name} {group}"
    return wire(load, tier, ends, up, up + tier.uplinks)


def peer_wires(
    load: Load, number: int, group: int, chosen: list[int]
) -> dict[tuple[int, int], Wire]:
    """Between children of a group that are joined directly, by their places, the lower first."""
    tier = load.tiers[number]
    full = tier.level.kind == "full"
    channels = _mesh(tier, group, chosen) if full else grid_channels(tier, group, chosen)
    found: dict[tuple[int, int], Wire] = {}
    for a, b in sorted({(min(pair), max(pair)) for pair in channels}):
        there, back = (np.array(channels.get(p, []), dtype=np.int64) for p in ((a, b), (b, a)))
        one, other = (child_name(load, number, group * tier.count + at) for at in (a, b))
        found[a, b] = wire(load, tier, (one, other), there, back)
    return found


def _mesh(tier: Tier, group: int, chosen: list[int]) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = {}
    for a in chosen:
        for b in chosen:
            if a != b:
                base = group * tier.ports * tier.count + a
                found[a, b] = [
                    tier.first + (base + port * tier.count) * (tier.count - 1) + b - (b > a)
                    for port in range(tier.ports)
                ]
    return found


def grid_channels(tier: Tier, group: int, chosen: list[int]) -> dict[tuple[int, int], list[int]]:
    """The channels of a ring or torus between neighbours that are both chosen."""
    found: dict[tuple[int, int], list[int]] = {}
    among, sizes = set(chosen), tier.level.size
    for a in chosen:
        stride = 1
        for dim, extent in enumerate(sizes):
            at = a // stride % extent
            for way in (0, 1):
                b = a + ((at + (1, -1)[way]) % extent - at) * stride
                if b in among and b != a:
                    base = (group * tier.count + a) * tier.ports
                    for port in range(tier.ports):
                        channel = 2 * ((base + port) * len(sizes) + dim) + way
                        found.setdefault((a, b), []).append(tier.first + channel)
            stride *= extent
    return found


def child_name(load: Load, number: int, child: int) -> str:
    """`device 5`, or a group by its level's name."""
    return f"device {child}" if number == 0 else f"{load.tiers[number - 1].level.name} {child}"
