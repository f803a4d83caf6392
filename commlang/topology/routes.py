"""Routes: which channels each message passes, for all messages at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.errors import CommlangError
from commlang.records import record
from commlang.topology.parts import GRIDS

if TYPE_CHECKING:
    from commlang.program.columns import Array
    from commlang.topology.network import Network, Tier

MAX_PASSED = 1 << 28
"""Most channels that all messages together may pass: 2 GiB of them."""


@record
class Routes:
    """Message m passes the channels `resource[pointer[m] : pointer[m + 1]]`, in this order."""

    pointer: Array
    resource: Array


class _Paths:
    """Stretches of routes, which become one array once all are known."""

    def __init__(self, messages: int) -> None:
        self.lengths = np.zeros(messages, dtype=np.int64)
        self.stretches: list[tuple[Array, Array | None, Array]] = []

    def add(self, messages: Array, channels: Array) -> None:
        """One further channel for each of the messages."""
        self.lengths[messages] += 1
        self.stretches.append((messages, None, channels))

    def add_several(self, messages: Array, counts: Array, channels: Array) -> None:
        """`counts` further channels for each of the messages, those of a message together."""
        self.lengths[messages] += counts
        self.stretches.append((messages, counts, channels))

    def check(self, more: int = 0) -> None:
        passed = int(self.lengths.sum()) + more
        if passed > MAX_PASSED:
            raise CommlangError(
                f"{len(self.lengths)} messages pass {passed} channels, more than {MAX_PASSED}; "
                "take fewer ranks, or a machine with shorter ways"
            )

    def routes(self) -> Routes:
        pointer = np.concatenate([[0], np.cumsum(self.lengths)])
        filled, resource = pointer[:-1].copy(), np.empty(int(pointer[-1]), dtype=np.int64)
        for messages, counts, channels in self.stretches:
            if counts is None:
                resource[filled[messages]] = channels
                filled[messages] += 1
            else:
                resource[np.repeat(filled[messages], counts) + _steps(counts)] = channels
                filled[messages] += counts
        return Routes(pointer, resource)


def _steps(counts: Array) -> Array:
    """0 … n - 1 for each count n, one after the other."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def routes(network: Network, src: Array, dst: Array) -> Routes:
    """The channels of each message; none where source and destination are one device."""
    src, dst = src.ravel(), dst.ravel()
    paths = _Paths(len(src))
    _walk(network, paths, np.arange(len(src)), src, dst)
    paths.check()
    return paths.routes()


def latency_of(network: Network, src: Array, dst: Array) -> Array:
    """Per message the latency in seconds, all hops included."""
    found = np.zeros(src.shape)
    tiers = network.tier_of(src, dst)
    for number, tier in enumerate(network.tiers):
        at = np.flatnonzero(tiers == number)
        if not len(at):
            continue
        a, b = src[at], dst[at]
        relay = _relay(tier, a, b)
        found[at] = tier.latency + tier.hop * _further(tier, relay, b)
        moved = relay != a
        if moved.any():
            found[at[moved]] += latency_of(network, a[moved], relay[moved])
    return found


def _relay(tier: Tier, src: Array, dst: Array) -> Array:
    """The device of the source's child from which the destination's port can be reached.

    NCCL does the same on rails (PXN): https://developer.nvidia.com/blog/
    doubling-all2all-performance-with-nvidia-collective-communication-library-2-12/.
    """
    if not tier.separate:
        return src
    same = tier.port(src) == tier.port(dst)
    return np.where(same, src, src - src % tier.inside + dst % tier.inside)


def _further(tier: Tier, src: Array, dst: Array) -> Array:
    """The hops after the first: two from leaf to leaf of a tree, by way of what joins them."""
    if tier.level.kind in GRIDS:
        return sum((hops for *_, hops in _legs(tier, src, dst)), np.zeros_like(src)) - 1
    return 2 * (tier.leaf(src) != tier.leaf(dst))


def _walk(network: Network, paths: _Paths, messages: Array, src: Array, dst: Array) -> None:
    """Add the ways of the messages; they may lie apart at different tiers."""
    tiers = network.tier_of(src, dst)
    for number in range(len(network.tiers)):
        at = np.flatnonzero(tiers == number)
        if len(at):
            _cross(network, number, paths, messages[at], src[at], dst[at])


def _cross(
    network: Network, number: int, paths: _Paths, messages: Array, src: Array, dst: Array
) -> None:
    """Add the ways of messages whose ends lie apart at one tier."""
    tier = network.tiers[number]
    relay = _relay(tier, src, dst)
    moved = np.flatnonzero(relay != src)
    if len(moved):
        _walk(network, paths, messages[moved], src[moved], relay[moved])
    carriers = [inner for inner in network.tiers[:number] if inner.level.carries]
    for inner in carriers:
        _leave(inner, paths, messages, relay)
    _through(tier, paths, messages, relay, dst)
    for inner in reversed(carriers):
        _enter(inner, paths, messages, dst)


def _through(tier: Tier, paths: _Paths, messages: Array, src: Array, dst: Array) -> None:
    match tier.level.kind:
        case "bus":
            paths.add(messages, bus_channel(tier, src))
        case "full":
            paths.add(messages, _mesh_channel(tier, src, dst))
        case "ring" | "torus":
            _hop(tier, paths, messages, src, dst)
        case _:
            apart = tier.leaf(src) != tier.leaf(dst)
            paths.add(messages, _input(tier, src))
            if apart.any():
                up = _uplink(tier, src[apart])
                paths.add(messages[apart], up)
                paths.add(messages[apart], _uplink(tier, dst[apart]) + tier.uplinks)
            paths.add(messages, _input(tier, dst) + tier.inputs)


def _leave(tier: Tier, paths: _Paths, messages: Array, device: Array) -> None:
    """Out of a group whose ports carry what goes farther."""
    if tier.level.kind == "bus":
        paths.add(messages, bus_channel(tier, device))
        return
    paths.add(messages, _input(tier, device))
    if tier.uplinks:
        paths.add(messages, _uplink(tier, device))


def _enter(tier: Tier, paths: _Paths, messages: Array, device: Array) -> None:
    """Into a group whose ports carry what comes from farther away."""
    if tier.level.kind == "bus":
        paths.add(messages, bus_channel(tier, device))
        return
    if tier.uplinks:
        paths.add(messages, _uplink(tier, device) + tier.uplinks)
    paths.add(messages, _input(tier, device) + tier.inputs)


def _input(tier: Tier, device: Array) -> Array:
    """The way up of a device's port."""
    return tier.first + tier.place(device) * tier.ports + tier.port(device)


def _uplink(tier: Tier, device: Array) -> Array:
    """The way up of a device's leaf switch."""
    leaf = tier.place(device) // tier.count * tier.leaves + tier.leaf(device)
    plane = tier.port(device) if tier.planes > 1 else 0
    return tier.first + 2 * tier.inputs + leaf * tier.planes + plane


def bus_channel(tier: Tier, device: Array) -> Array:
    """The bus of a device's group, of several that of its port."""
    return tier.first + tier.place(device) // tier.count * tier.ports + tier.port(device)


def _mesh_channel(tier: Tier, src: Array, dst: Array) -> Array:
    group, source = np.divmod(tier.place(src), tier.count)
    target = tier.place(dst) % tier.count
    row = (group * tier.ports + tier.port(src)) * tier.count + source
    return tier.first + row * (tier.count - 1) + target - (target > source)


def _legs(tier: Tier, src: Array, dst: Array) -> list[tuple[int, Array, Array, Array]]:
    """Per dimension of a grid: its extent, the coordinate to start at, direction, hops.

    The shorter way round is taken, upwards if both are as long.
    """
    found: list[tuple[int, Array, Array, Array]] = []
    a, b = tier.place(src) % tier.count, tier.place(dst) % tier.count
    for extent in tier.sides:
        start, end = a % extent, b % extent
        a, b = a // extent, b // extent
        up = (end - start) % extent if tier.level.wrap else end - start
        forward = 2 * up <= extent if tier.level.wrap else up >= 0
        hops = np.where(forward, up, extent - up if tier.level.wrap else -up)
        found.append((extent, start, np.where(forward, 1, -1), hops))
    return found


def _hop(tier: Tier, paths: _Paths, messages: Array, src: Array, dst: Array) -> None:
    """One dimension after the other, the first first."""
    legs = _legs(tier, src, dst)
    paths.check(sum(int(hops.sum()) for *_, hops in legs))
    child, port, stride = tier.place(src), tier.port(dst), 1
    for number, (extent, start, way, hops) in enumerate(legs):
        base = child - start * stride
        # A channel's number grows evenly with the coordinate along the dimension.
        zero = 2 * ((base * tier.ports + port) * len(legs) + number) + (way < 0) + tier.first
        at = np.repeat(start, hops) + np.repeat(way, hops) * _steps(hops)
        at += np.where(at < 0, extent, 0) - np.where(at >= extent, extent, 0)
        channels = np.repeat(zero, hops) + at * (2 * stride * tier.ports * len(legs))
        paths.add_several(messages, hops, channels)
        child = base + (start + way * hops) % extent * stride
        stride *= extent
