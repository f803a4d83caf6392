"""What the members of a collective send, algorithm by algorithm.

Each function takes the calls of one kind and yields blocks of flows. Sizes are exact: where data
are cut into one chunk per member, chunk i is `share(n, members, i)` elements long, the first ones
longer by one. `algorithms.py` says which algorithm is from where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlang.program.columns import Array
    from commlang.traffic.calls import Calls

Flow: TypeAlias = "tuple[Array, Array, Array, Array]"
"""Indices of calls, the places that they send to, the bytes and the messages of one call."""

Algorithm: TypeAlias = "Callable[[Calls], Iterator[Flow]]"

MOST_FLOWS = 1 << 25
"""Most flows that one statement's ranks may have between them: a GiB of columns."""


def ring_all_reduce(calls: Calls) -> Iterator[Flow]:
    """A ring reduce-scatter, then a ring all-gather: 2 (p - 1) / p of the data on each edge."""
    skipped = calls.part(calls.place) + calls.part(calls.next())
    yield _to_next(calls, 2 * calls.bytes - skipped, 2 * (calls.size - 1))


def ring_all_gather(calls: Calls) -> Iterator[Flow]:
    """Every part but that of the next member, which has it already, goes to the next member."""
    yield _to_next(calls, calls.bytes - calls.part(calls.next()), calls.size - 1)


def ring_reduce_scatter(calls: Calls) -> Iterator[Flow]:
    """Every part but the member's own, which ends there, goes to the next member."""
    yield _to_next(calls, calls.bytes - calls.part(calls.place), calls.size - 1)


def ring_reduce(calls: Calls) -> Iterator[Flow]:
    """A ring reduce-scatter, then every member sends its part to the root."""
    yield from ring_reduce_scatter(calls)
    leaf = np.flatnonzero(calls.place != calls.root)
    yield _flow(leaf, calls.root[leaf], calls.part(calls.place)[leaf])


def tree_broadcast(calls: Calls) -> Iterator[Flow]:
    """A binomial tree: in round k the first 2^k members from the root send to the next 2^k."""
    virtual = calls.virtual()
    for step in _powers(calls):
        index = np.flatnonzero((virtual < step) & (virtual + step < calls.size))
        yield _flow(index, calls.actual(virtual[index] + step, index), calls.bytes[index])


def tree_reduce(calls: Calls) -> Iterator[Flow]:
    """The same tree the other way: each member sends to the one with its highest bit cleared."""
    virtual = calls.virtual()
    index = np.flatnonzero(virtual)
    v = virtual[index]
    parent = v - (1 << np.floor(np.log2(v)).astype(np.int64)) if len(v) else v
    yield _flow(index, calls.actual(parent, index), calls.bytes[index])


def tree_all_reduce(calls: Calls) -> Iterator[Flow]:
    """A reduce to the first member and a broadcast from it."""
    yield from tree_reduce(calls)
    yield from tree_broadcast(calls)


def chain_broadcast(calls: Calls) -> Iterator[Flow]:
    """Each member but the last passes everything on to the next, in pieces."""
    virtual = calls.virtual()
    index = np.flatnonzero(virtual + 1 < calls.size)
    yield _flow(index, calls.actual(virtual[index] + 1, index), calls.bytes[index])


def chain_reduce(calls: Calls) -> Iterator[Flow]:
    """Each member but the root passes its sum on to the one before it, in pieces."""
    virtual = calls.virtual()
    index = np.flatnonzero(virtual)
    yield _flow(index, calls.actual(virtual[index] - 1, index), calls.bytes[index])


def doubling_all_reduce(calls: Calls) -> Iterator[Flow]:
    """Everybody swaps everything with the member at distance 1, 2, 4 …

    If the members are no power of two, of the first 2 r, r being those too many, the even ones
    give to the odd ones before and get the result after.
    """
    power = 1 << np.floor(np.log2(np.maximum(calls.size, 1))).astype(np.int64)
    extra = calls.size - power
    folded = calls.place < 2 * extra
    paired = np.flatnonzero(folded)
    yield _flow(paired, calls.place[paired] ^ 1, calls.bytes[paired])
    number = np.where(folded, calls.place >> 1, calls.place - extra)
    active = ~folded | (calls.place % 2 == 1)
    for step in _powers(calls):
        index = np.flatnonzero(active & (step < power))
        other = number[index] ^ step
        place = np.where(other < extra[index], 2 * other + 1, other + extra[index])
        yield _flow(index, place, calls.bytes[index])


def from_root(calls: Calls) -> Iterator[Flow]:
    """The root sends everything to each."""
    index, place = _others(calls, np.flatnonzero(calls.place == calls.root))
    yield _flow(index, place, calls.bytes[index])


def to_root(calls: Calls) -> Iterator[Flow]:
    """Each sends what it has to the root."""
    index = np.flatnonzero(calls.place != calls.root)
    yield _flow(index, calls.root[index], calls.bytes[index])


def parts_from_root(calls: Calls) -> Iterator[Flow]:
    """The root sends its part to each."""
    index, place = _others(calls, np.flatnonzero(calls.place == calls.root))
    yield _flow(index, place, calls.part(place, index))


def parts_to_all(calls: Calls) -> Iterator[Flow]:
    """Each sends each its part; nothing is sent for a part without elements."""
    index, place = _others(calls, np.arange(len(calls)))
    size = calls.part(place, index)
    some = np.flatnonzero(size)
    yield _flow(index[some], place[some], size[some])


def own_to_all(calls: Calls) -> Iterator[Flow]:
    """Each sends its own part to each."""
    index, place = _others(calls, np.arange(len(calls)))
    yield _flow(index, place, calls.part(calls.place)[index])


def whole_to_all(calls: Calls) -> Iterator[Flow]:
    """Each sends everything to each."""
    index, place = _others(calls, np.arange(len(calls)))
    yield _flow(index, place, calls.bytes[index])


def dissemination(calls: Calls) -> Iterator[Flow]:
    """In round k each member tells the one 2^k further; no data."""
    for step in _powers(calls):
        index = np.flatnonzero(step < calls.size)
        yield _flow(index, calls.next(step)[index], np.zeros(len(index), dtype=np.int64))


def _flow(index: Array, place: Array, size: Array) -> Flow:
    return index, place, size, np.ones(len(index), dtype=np.int64)


def _to_next(calls: Calls, size: Array, messages: Array) -> Flow:
    return np.arange(len(calls)), calls.next(), size, messages


def _powers(calls: Calls) -> Iterator[int]:
    """1, 2, 4 … below the size of the largest group."""
    step, most = 1, int(calls.size.max(initial=0))
    while step < most:
        yield step
        step *= 2


def _others(calls: Calls, index: Array) -> tuple[Array, Array]:
    """Each of these calls with every other member of its group."""
    size = calls.size[index]
    total = int(size.sum())
    if total > MOST_FLOWS:
        raise UsageError(
            f"`{calls.program.text(int(calls.row[0]))}` at {calls.program.where(int(calls.row[0]))}"
            f" makes {total:,} pairs of ranks; at most {MOST_FLOWS:,} are counted. Take fewer "
            "ranks, which show the same picture"
        )
    start = np.cumsum(size) - size
    index = np.repeat(index, size)
    place = np.arange(total) - np.repeat(start, size)
    other = place != calls.place[index]
    return index[other], place[other]
