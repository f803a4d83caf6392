"""What a machine is described by: link classes, levels of groups, devices. All figures are SI."""

from __future__ import annotations

import math
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from commlang.diagnostics import did_you_mean
from commlang.dtypes import DTYPES
from commlang.operations import Kind as Operation
from commlang.topology.quantities import Bytes, BytesPerSecond, FlopPerSecond, Seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

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


COLLECTIVES = tuple(kind.name.lower() for kind in Operation if kind.is_collective)
"""What measured times may be of."""


def _named(known: Iterable[str], thing: str) -> AfterValidator:
    """What refuses a name that is not known, which would be left out without a word."""
    names = list(known)

    def check(name: str) -> str:
        if name not in names:
            hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
            raise ValueError(f"`{name}` is no {thing}; {hint}")
        return name

    return AfterValidator(check)


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
    the link on rings and tori, and 0 from leaf to leaf of a tree. `channel` is what all messages of
    a bus share, where one alone has less: the link's bandwidth.
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
    channel: BytesPerSecond | None = None
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
                "oversubscription is of a leaf",
            ),
            (not self.wrap and self.kind not in GRIDS, "only rings and tori wrap"),
            (self.carries and self.kind not in CARRIERS, f"only {', '.join(CARRIERS)} carry"),
            (self.channel is not None and self.kind != "bus", "only a bus has a channel"),
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

    flops: dict[Annotated[Name, _named(DTYPES, "dtype")], FlopPerSecond] = {}
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

    name: Annotated[Name, _named(COLLECTIVES, "collective")]
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

        Beyond the last point the line of the last two goes on, unless noise makes it fall; with one
        point only, that from no bytes in no time. Below the first point its time holds.
        """
        if not self.points:
            return (self.alpha or 0.0) + (self.beta or 0.0) * size
        x0, y0 = self.points[0]
        if size <= x0 or self.points == ((0.0, y0),):
            return y0
        lines = pairwise(((0.0, 0.0), *self.points) if len(self.points) == 1 else self.points)
        *_, ((x0, y0), (x1, y1)) = takewhile(lambda line: line[0][0] < size, lines)
        return y1 if size > x1 and y1 < y0 else y0 + (size - x0) * (y1 - y0) / (x1 - x0)
