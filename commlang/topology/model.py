"""The description of a machine: link classes, levels of groups, devices. All figures are SI."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from commlang.errors import UsageError
from commlang.topology.quantities import Bytes, BytesPerSecond, FlopPerSecond, Seconds

if TYPE_CHECKING:
    from commlang.program.columns import Array
    from commlang.topology.network import Network
    from commlang.topology.resources import Resource
    from commlang.topology.routes import Routes

MAX_DEVICES = 1 << 24
"""Most devices of a machine."""
MAX_MESH = 1 << 12
"""Most children of a level that joins each with each."""
CARRIERS = ("switch", "fat_tree", "bus")
"""Kinds of levels that messages to farther groups may have to pass."""
TREES = ("fat_tree", "rails")
"""Kinds of levels with leaf switches."""
GRIDS = ("ring", "torus")
"""Kinds of levels in which a message may take several hops."""


def _listed(size: Any) -> Any:
    """A number stands for the only dimension."""
    return (size,) if isinstance(size, (int, float, str)) else size


def _unlisted(size: tuple[int, ...]) -> int | list[int]:
    return size[0] if len(size) == 1 else list(size)


Kind = Literal["switch", "rails", "fat_tree", "full", "ring", "torus", "bus"]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Text = Annotated[str, Field(max_length=10_000)]
Count = Annotated[int, Field(ge=1, le=MAX_DEVICES, strict=True)]
Extent = Annotated[
    tuple[Count, ...],
    Field(min_length=1, max_length=8),
    BeforeValidator(_listed),
    PlainSerializer(_unlisted),
]
CONFIG = ConfigDict(frozen=True, extra="forbid")


class Link(BaseModel):
    """A class of links, by LogGP: a message of k bytes takes `o + L + (k - 1) / bandwidth + o`.

    `latency` is L, `overhead` o is the time in which the processor at each end does nothing else,
    `gap` g is the least time between two messages of one device; all in seconds. `bandwidth` is
    1/G in bytes per second and one direction. Source of the model: Alexandrov et al., LogGP:
    Incorporating Long Messages into the LogP Model, 1995, https://doi.org/10.1145/215399.215427.
    """

    model_config = CONFIG

    name: Name
    latency: Seconds
    bandwidth: BytesPerSecond
    overhead: Seconds = 0.0
    gap: Seconds = 0.0
    source: Text = ""


class Level(BaseModel):
    """How children are joined into one group: devices, or groups of the level before.

    - `switch`: each child has `ports` into a crossbar that never is the bottleneck;
    - `fat_tree`: the same by leaf switches of `leaf` children, whose way up has `oversubscription`
      times less bandwidth than their ports together;
    - `rails`: port p of each child goes into switches of its own, `leaf` children to a switch;
    - `full`: a channel from each child to each other, on each port;
    - `ring`, `torus`: channels to both neighbours, in each dimension, on each port; with
      `wrap: false` the ends are not joined;
    - `bus`: one channel that all messages of the group share, on each port.

    `size` is how many children a group has, of a torus how many in each dimension; of the outermost
    level it is the most that there may be. The devices of a child share its ports evenly, in
    order. But for `switch` and `fat_tree` the ports lead into separate networks: a message to a
    device on another port goes inside its own group first, to the device on that port. Messages to
    farther groups pass the ports of a level (and a bus) only with `carries: true`, as PCIe does;
    NVLink does not. `hop` is what each hop after the first adds to the latency: by default that of
    the link on rings and tori, and 0 from leaf to leaf of a tree.
    """

    model_config = CONFIG

    name: Name
    kind: Kind
    link: Name
    size: Extent
    ports: Count = 1
    leaf: Count | None = None
    oversubscription: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 1.0
    wrap: bool = True
    carries: bool = False
    hop: Seconds | None = None
    source: Text = ""

    @property
    def count(self) -> int:
        """How many children a group has."""
        return math.prod(self.size)

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        for wrong, said in (
            (len(self.size) > 1 and self.kind != "torus", "only a torus has several dimensions"),
            (self.leaf is not None and self.kind not in TREES, "only trees and rails have a leaf"),
            (
                self.oversubscription != 1 and self.leaf is None,
                "oversubscription is that of a leaf",
            ),
            (not self.wrap and self.kind not in GRIDS, "only rings and tori wrap"),
            (self.carries and self.kind not in CARRIERS, f"only {', '.join(CARRIERS)} carry"),
            (self.kind == "full" and self.count > MAX_MESH, f"full is of at most {MAX_MESH}"),
        ):
            if wrong:
                raise ValueError(f"level `{self.name}` is of kind {self.kind}: {said}")
        return self


class Compute(BaseModel):
    """What a device computes: operations per second by torch's name of a dtype, at best.

    `memory_bandwidth` is in bytes per second, `memory` in bytes, `efficiency` the part of the
    peak that real work reaches.
    """

    model_config = CONFIG

    flops: dict[Name, FlopPerSecond] = {}
    memory_bandwidth: BytesPerSecond | None = None
    memory: Bytes | None = None
    efficiency: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 1.0
    source: Text = ""


class Collective(BaseModel):
    """Measured times of one collective on one world, that go before any formula.

    Either `points`, pairs of (bytes, seconds) by growing bytes, or `alpha` (seconds) and `beta`
    (seconds per byte). Bytes are those of the largest tensor of the call on one rank.
    """

    model_config = CONFIG

    name: Name
    world: Count
    alpha: Seconds | None = None
    beta: Seconds | None = None
    points: Annotated[tuple[tuple[Bytes, Seconds], ...], Field(max_length=1000)] = ()
    source: Text = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        line = self.alpha is not None and self.beta is not None
        if bool(self.points) == line or (self.points and (self.alpha, self.beta) != (None, None)):
            raise ValueError("give either `points`, or `alpha` and `beta`")
        sizes = [size for size, _ in self.points]
        if sizes != sorted(set(sizes)):
            raise ValueError("`points` must be sorted by bytes, each size once")
        return self

    def seconds(self, size: float) -> float:
        """The time of a call of `size` bytes: between points on the line that joins them.

        Beyond the last point the line of the last two goes on; below the first, its time holds.
        """
        if not self.points:
            return (self.alpha or 0.0) + (self.beta or 0.0) * size
        at = sum(point <= size for point, _ in self.points)
        if at == 0 or len(self.points) == 1:
            return self.points[0][1] * (max(1.0, size / self.points[0][0]) if at else 1.0)
        (x0, y0), (x1, y1) = self.points[min(at, len(self.points) - 1) - 1 :][:2]
        return max(y0 + (size - x0) * (y1 - y0) / (x1 - x0), 0.0)


class Machine(BaseModel):
    """A machine: device d is the d-th of its group at `levels[0]`, that group d // size, and so on.

    Rank r runs on device r. Arrays of devices are integers from 0; they are not checked, see
    `for_world`.
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
        devices.
        """
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
        return self.network.link_of(src, dst)

    def latency_of(self, src: Array, dst: Array) -> Array:
        """Per pair the latency L in seconds, hops included; 0 where both are one device."""
        from commlang.topology.routes import latency_of

        return latency_of(self.network, src, dst)

    def routes(self, src: Array, dst: Array) -> Routes:
        """The resources that each message passes, in order, as indices into `resources`."""
        from commlang.topology.routes import routes

        return routes(self.network, src, dst)

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
