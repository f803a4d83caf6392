"""Traffic by the links of a machine: by class of link, and by each physical channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from commlang.errors import UsageError
from commlang.records import record
from commlang.traffic.table import sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program.columns import Array
    from commlang.traffic.table import Traffic


class RoutesLike(Protocol):
    """Of message i, `resource[pointer[i] : pointer[i + 1]]` are the channels that it passes."""

    @property
    def pointer(self) -> Array: ...
    @property
    def resource(self) -> Array: ...


class MachineLike(Protocol):
    """What is needed of a machine; `commlang.topology.Machine` is one."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def links(self) -> Sequence[Any]: ...
    @property
    def capacities(self) -> Any: ...
    def link_of(self, src: Array, dst: Array, /) -> Array: ...
    def routes(self, src: Array, dst: Array, /) -> RoutesLike: ...


@record
class LinkTraffic:
    """Bytes and messages over each class of link of a machine: int64 (links,)."""

    bytes: Array
    messages: Array


def by_link(traffic: Traffic, machine: MachineLike) -> LinkTraffic:
    """The traffic over each class of link; raises UsageError if ranks are more than devices."""
    _fit(traffic, machine)
    pairs, count = traffic.pairs(), len(machine.links)
    link = np.asarray(machine.link_of(pairs.src, pairs.dst), dtype=np.int64)
    far = link >= 0  # nothing but a message of a rank to itself uses no link
    return LinkTraffic(
        sums(link[far], pairs.bytes[far], count), sums(link[far], pairs.messages[far], count)
    )


def by_resource(traffic: Traffic, machine: MachineLike) -> Array:
    """Bytes through each of a machine's `resources`: int64; raises UsageError as above."""
    _fit(traffic, machine)
    pairs = traffic.pairs()
    routes = machine.routes(pairs.src, pairs.dst)
    each = np.repeat(pairs.bytes, np.diff(routes.pointer))
    return sums(np.asarray(routes.resource), each, len(machine.capacities))


def _fit(traffic: Traffic, machine: MachineLike) -> None:
    if traffic.world > machine.size:
        raise UsageError(
            f"{traffic.world:,} ranks do not fit on {machine.name}, which has {machine.size:,} "
            "devices; take fewer ranks or a larger machine"
        )
