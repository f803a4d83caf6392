"""The description of a machine, and what follows from it for messages. All figures are SI."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BaseModel, Field, model_validator

from commlang.errors import UsageError
from commlang.topology.parts import (
    CONFIG,
    MAX_DEVICES,
    Collective,
    Compute,
    Level,
    Link,
    Name,
    Text,
)

if TYPE_CHECKING:
    from commlang.program.columns import Array
    from commlang.topology.network import Network
    from commlang.topology.resources import Resource
    from commlang.topology.routes import Routes


class Machine(BaseModel):
    """A machine: device d is the d-th of its group at `levels[0]`, that group d // size, and so on.

    Rank r runs on device r. `links` of a message, routes and latencies are for arrays of devices,
    numbered from 0, all messages at once; a device that there is not raises UsageError. Of a large
    machine take the part for a world first, `for_world`: its channels are fewer.
    """

    model_config = CONFIG

    name: Name
    about: Text = ""
    links: Annotated[tuple[Link, ...], Field(min_length=1, max_length=100)]
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=10)]
    compute: Compute = Compute()
    collectives: Annotated[tuple[Collective, ...], Field(max_length=10_000)] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [link.name for link in self.links]
        if len(set(names)) < len(names):
            raise ValueError("two links have one name")
        seen: set[tuple[str, int]] = set()
        for one in self.collectives:
            if (one.name, one.world) in seen:
                raise ValueError(f"the times of {one.name} on {one.world} ranks are given twice")
            seen.add((one.name, one.world))
        inside = 1
        for level in self.levels:
            if level.link not in names:
                known = ", ".join(names)
                raise ValueError(f"level `{level.name}`: no link `{level.link}` among {known}")
            if inside % level.ports:
                raise ValueError(
                    f"level `{level.name}`: {level.ports} ports for {inside} device(s) of a child; "
                    "these must share them evenly"
                )
            inside *= level.count
        if inside > MAX_DEVICES:
            raise ValueError(f"{inside} devices are more than {MAX_DEVICES}")
        return self

    @property
    def size(self) -> int:
        """How many devices there are, at most."""
        return math.prod(level.count for level in self.levels)

    def for_world(self, world: int) -> Machine:
        """The part that so many ranks need: levels and outermost group cut to them.

        Of a torus it is the most nearly cubic part. Raises UsageError if there are more ranks than
        devices, and for less than one.
        """
        if world < 1:
            raise UsageError(f"a world has 1 rank or more, not {world}")
        if world > self.size:
            raise UsageError(
                f"{self.name} has {self.size} devices, fewer than {world} ranks; take another "
                "machine, or raise the size of its outermost level"
            )
        inside = math.prod(level.count for level in self.levels[:-1])
        level = self.levels[-1]
        size = _part(level.size, -(-world // inside))
        if size == level.size:
            return self
        cut = level.model_copy(update={"size": size})
        return self.model_copy(update={"levels": (*self.levels[:-1], cut)})

    def link_of(self, src: Array, dst: Array) -> Array:
        """Per pair the index into `links` that governs a message, that of the outermost level.

        -1 where source and destination are one device.
        """
        return self.network.link_of(*self._devices(src, dst))

    def latency_of(self, src: Array, dst: Array) -> Array:
        """Per pair the latency L in seconds, hops included; 0 where both are one device."""
        from commlang.topology.routes import latency_of

        src, dst = self._devices(src, dst)
        return latency_of(self.network, src.ravel(), dst.ravel()).reshape(src.shape)

    def routes(self, src: Array, dst: Array) -> Routes:
        """The resources that each message passes, in order, as indices into `resources`.

        None for a message of a device to itself. Raises CommlangError if they are too many to hold.
        """
        from commlang.topology.routes import routes

        return routes(self.network, *self._devices(src, dst))

    def _devices(self, src: Array, dst: Array) -> tuple[Array, Array]:
        """Both as arrays of one shape; raises UsageError for a device that there is not."""
        import numpy as np

        pair = np.broadcast_arrays(np.asarray(src, np.int64), np.asarray(dst, np.int64))
        for devices in pair:
            if devices.size and not 0 <= devices.min() <= devices.max() < self.size:
                wrong = devices.max() if devices.min() >= 0 else devices.min()
                raise UsageError(f"{self.name} has devices 0 to {self.size - 1}, and no {wrong}")
        return pair[0], pair[1]

    @cached_property
    def network(self) -> Network:
        """The levels as numbers: what routes are computed from."""
        from commlang.topology.network import network_of

        return network_of(self)

    @cached_property
    def capacities(self) -> Array:
        """Bytes per second of each resource: float64, as long as `resources`, but at no cost."""
        return self.network.capacities()

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """All directed channels; of a large machine take `for_world` first."""
        from commlang.topology.resources import resources

        return resources(self)

    def collective(self, name: str, world: int) -> Collective | None:
        """The measured times of a collective on a world of so many ranks, if there are any."""
        found = (one for one in self.collectives if (one.name, one.world) == (name, world))
        return next(found, None)


def _part(size: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """The most nearly cubic part of a grid with at least so many places.

    The shortest side is doubled until there are enough, as slices of a TPU pod are cut.
    """
    if len(size) == 1:
        return (max(wanted, 1),)
    part = [1] * len(size)
    while math.prod(part) < wanted:
        shortest = min((n for n in range(len(size)) if part[n] < size[n]), key=lambda n: part[n])
        part[shortest] = min(2 * part[shortest], size[shortest])
    return tuple(part)
