"""What messages cost, by LogGP, and which resources they pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.simulate.sizes import Bytes
    from commlang.simulate.wiring import Wiring
    from commlang.topology import Machine


@record
class Pairs:
    """What holds between pairs of devices: o, g and L in seconds, and seconds per byte.

    `pointer` and `resource` are their routes. A message is no faster than the slowest channel that
    it passes.
    """

    overhead: Array
    gap: Array
    latency: Array
    pace: Array
    pointer: Array
    resource: Array

    @classmethod
    def of(cls, machine: Machine, src: Array, dst: Array) -> Pairs:
        """The pairs (src, dst) of a machine; none are of one device."""
        link = machine.link_of(src, dst)
        overhead, gap, bandwidth = (
            np.array([getattr(one, name) for one in machine.links])[link]
            for name in ("overhead", "gap", "bandwidth")
        )
        routes = machine.routes(src, dst)
        pace = 1.0 / bandwidth
        if len(routes.resource):
            slowest = np.maximum.reduceat(
                1.0 / machine.capacities[routes.resource],
                np.minimum(routes.pointer[:-1], len(routes.resource) - 1),
            )
            pace = np.where(np.diff(routes.pointer) > 0, np.maximum(pace, slowest), pace)
        latency = machine.latency_of(src, dst)
        return cls(overhead, gap, latency, pace, routes.pointer, routes.resource)


@record
class Messages:
    """The messages of a program: of which pair each is, its bytes, and the ranks of the pairs."""

    pair: Array
    bytes: Array
    src: Array
    dst: Array
    pairs: Pairs


def messages_of(program: Program, machine: Machine, wiring: Wiring, sizes: Bytes) -> Messages:
    """Messages lie by channel, so neighbours mostly are of one pair."""
    src, dst = program.rank[wiring.send], program.peer[wiring.send]
    fresh = np.ones(len(src), dtype=np.bool_)
    fresh[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
    pair = np.cumsum(fresh) - 1
    src, dst = src[fresh].astype(np.int64), dst[fresh].astype(np.int64)
    pairs = Pairs.of(machine, src, dst)
    return Messages(pair, sizes.of_one(wiring.send), src, dst, pairs)
