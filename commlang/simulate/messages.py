"""What messages cost, by LogGP, and which resources they pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    """The messages of a program by lots: neighbours that go the same way with as many bytes.

    `lot` tells of which lot each message is, `pair` and `bytes` are those of each lot, `src` and
    `dst` the ranks of each pair. What a lot costs is looked up again and again while it is in the
    processor's cache; what each message costs would come from memory.
    """

    lot: Array
    pair: Array
    bytes: Array
    src: Array
    dst: Array
    pairs: Pairs


def messages_of(
    program: Program, machine: Machine, wiring: Wiring, sizes: Bytes, *, apart: bool = False
) -> Messages:
    """Messages lie by channel, so neighbours mostly are of one lot; if `apart`, each is its own."""
    send = wiring.send
    if apart:
        first = np.arange(len(send))
    elif sizes.fast:
        from commlang.simulate.compiled import compiled

        first = np.empty(len(send), dtype=np.int32)
        first = first[: compiled(part)(send, program.rank, program.peer, *sizes.columns, first)]
    else:
        src, dst, size = program.rank[send], program.peer[send], sizes.of_one(send)
        fresh = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1]) | (size[1:] != size[:-1])
        first = np.append(0, np.flatnonzero(fresh) + 1)[: len(send)]
    lot = np.repeat(np.arange(len(first), dtype=np.int32), np.diff(first, append=len(send)))
    lead = send[first]
    src, dst = program.rank[lead].astype(np.int64), program.peer[lead].astype(np.int64)
    fresh = np.ones(len(lead), dtype=np.bool_)
    fresh[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])
    pair, src, dst = np.cumsum(fresh) - 1, src[fresh], dst[fresh]
    return Messages(lot, pair, sizes.of_one(lead), src, dst, Pairs.of(machine, src, dst))


def part(send: Any, rank: Any, peer: Any, first: Any, each: Any, found: Any) -> int:
    """Put the first message of each lot into `found`; returns how many lots there are."""
    count, src, dst, size = 0, -1, -1, -1
    for m in range(len(send)):
        row = send[m]
        if rank[row] != src or peer[row] != dst or each[first[row]] != size:
            src, dst, size = rank[row], peer[row], each[first[row]]
            found[count] = m
            count += 1
    return count
