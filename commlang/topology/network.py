"""A machine as numbers: where each level's devices, groups and channels are counted from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record
from commlang.topology.parts import GRIDS, TREES

if TYPE_CHECKING:
    from commlang.program.columns import Array
    from commlang.topology.model import Machine
    from commlang.topology.parts import Level


@record
class Tier:
    """One level of a machine, and the numbers of its channels.

    A group holds `count` children of `inside` devices each; there are `groups` groups. `separate`
    says that ports lead into networks of their own. The channels are `first : first + channels`:
    of switches the ways up of all children by port, then the ways down, then of leaf switches up
    and down, by plane; of grids by child, port, dimension and direction (up, then down); of `full`
    by group, port, source and destination; of a bus by group and port.
    """

    level: Level
    link: int
    latency: float
    hop: float
    bandwidth: float
    inside: int
    groups: int
    leaves: int
    first: int

    @property
    def count(self) -> int:
        return self.level.count

    @property
    def ports(self) -> int:
        return self.level.ports

    @property
    def sides(self) -> tuple[int, ...]:
        """The dimensions of a grid in which there is anywhere to go."""
        return tuple(side for side in self.level.size if side > 1)

    @property
    def separate(self) -> bool:
        return self.level.kind not in ("switch", "fat_tree") and self.ports > 1

    @property
    def planes(self) -> int:
        """How many leaf switches stand side by side for the same children."""
        return self.ports if self.level.kind == "rails" else 1

    @property
    def inputs(self) -> int:
        """How many ports all children have."""
        return self.groups * self.count * self.ports

    @property
    def uplinks(self) -> int:
        """How many leaf switches have a way up."""
        return self.groups * self.leaves * self.planes if self.leaves > 1 else 0

    @property
    def channels(self) -> int:
        match self.level.kind:
            case "full":
                return self.groups * self.ports * self.count * (self.count - 1)
            case "ring" | "torus":
                return self.inputs * 2 * len(self.sides)
            case "bus":
                return self.groups * self.ports
            case _:
                return 2 * (self.inputs + self.uplinks)

    def place(self, device: Array) -> Array:
        """The number of a device's child among all children of this level's groups."""
        return device // self.inside

    def port(self, device: Array) -> Array:
        """The port of its child that a device uses."""
        return device % self.inside * self.ports // self.inside

    def leaf(self, device: Array) -> Array:
        """The leaf switch of a device's child, within its group."""
        return self.place(device) % self.count // (self.level.leaf or self.count)

    def capacities(self) -> Array:
        """Bytes per second of each channel."""
        found = np.full(self.channels, self.bandwidth)
        if self.uplinks:
            # A leaf that is not full has the whole way up: switches are cabled before nodes are.
            ports = (self.level.leaf or 1) * self.ports // self.planes
            found[2 * self.inputs :] = ports * self.bandwidth / self.level.oversubscription
        return found


@record
class Network:
    """The tiers of a machine, innermost first."""

    tiers: tuple[Tier, ...]

    @property
    def channels(self) -> int:
        return sum(tier.channels for tier in self.tiers)

    def tier_of(self, src: Array, dst: Array) -> Array:
        """Per pair the outermost tier at which the devices lie apart, -1 for one device."""
        found = np.full(np.broadcast(src, dst).shape, -1, dtype=np.int64)
        for number, tier in enumerate(self.tiers):
            found[tier.place(src) != tier.place(dst)] = number
        return found

    def link_of(self, src: Array, dst: Array) -> Array:
        """Per pair the index of the link class that governs, -1 for one device."""
        links = np.array([*(tier.link for tier in self.tiers), -1], dtype=np.int64)
        return links[self.tier_of(src, dst)]

    def capacities(self) -> Array:
        """Bytes per second of each channel of all tiers."""
        return np.concatenate([tier.capacities() for tier in self.tiers])


def network_of(machine: Machine) -> Network:
    """The tiers of a machine, with its channels numbered from 0 in the order of the levels."""
    index = {link.name: number for number, link in enumerate(machine.links)}
    tiers: list[Tier] = []
    inside, first = 1, 0
    for level in machine.levels:
        link = machine.links[index[level.link]]
        default = link.latency if level.kind in GRIDS else 0.0
        tier = Tier(
            level=level,
            link=index[level.link],
            latency=link.latency,
            hop=default if level.hop is None else level.hop,
            bandwidth=level.channel or link.bandwidth,
            inside=inside,
            groups=machine.size // (inside * level.count),
            leaves=math.ceil(level.count / level.leaf) if level.kind in TREES and level.leaf else 1,
            first=first,
        )
        tiers.append(tier)
        inside *= level.count
        first += tier.channels
    return Network(tuple(tiers))
