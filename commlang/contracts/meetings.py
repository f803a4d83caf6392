"""From collectives to flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts.actions import Act, Action
from commlang.contracts.flows import LATE
from commlang.contracts.lowering import reduction
from commlang.contracts.regions import spread
from commlang.operations import Kind
from commlang.records import record

if TYPE_CHECKING:
    from commlang.contracts.lowering import Lowering
    from commlang.contracts.operands import Operands
    from commlang.program.columns import Array


@record
class _Calls:
    """The calls of some collectives of one kind: call i is that of member `place[i]`.

    The calls of instance j are `start[j] : start[j] + size[j]`; `instance[i]` is that of call i.
    """

    row: Array
    instance: Array
    place: Array
    start: Array
    size: Array

    def pairs(self) -> tuple[Array, Array]:
        """All pairs (call, call) of one instance."""
        size = self.size[self.instance]
        other, one = spread(self.start[self.instance], size)
        return one, other

    def roots(self, low: Lowering) -> Array:
        """The root's call, by instance."""
        at = np.flatnonzero(low.program.rank[self.row] == low.program.peer[self.row])
        root = np.zeros(len(self.start), dtype=np.int64)
        root[self.instance[at]] = at
        return root


def lower_collectives(low: Lowering) -> None:
    """All collectives, kind by kind."""
    meetings = low.collectives
    if len(meetings.start) < 2:
        return
    kind = low.program.kind[meetings.row[meetings.start[:-1]]]
    lowered = {
        Kind.ALL_REDUCE: _all_reduce,
        Kind.REDUCE: _reduce,
        Kind.BROADCAST: _broadcast,
        Kind.SCATTER: _scatter,
        Kind.GATHER: _gather,
        Kind.ALL_GATHER: _all_gather,
        Kind.REDUCE_SCATTER: _reduce_scatter,
        Kind.ALL_TO_ALL: _all_to_all,
    }
    for number, lower in lowered.items():
        chosen = np.flatnonzero(kind == number)
        if len(chosen):
            lower(low, _calls(low, chosen))


def _calls(low: Lowering, chosen: Array) -> _Calls:
    meetings = low.collectives
    first = meetings.start[chosen].astype(np.int64)
    size = meetings.start[chosen + 1].astype(np.int64) - first
    at, instance = spread(first, size)
    start = np.cumsum(size) - size
    place = np.arange(len(at)) - start[instance]
    return _Calls(meetings.row[at].astype(np.int64), instance, place, start, size)


def _move(
    low: Lowering, source: Array, target: Array, length: Array, row: Array, *, late: bool = False
) -> None:
    code = low.builder.code(Action(Act.COPY))
    low.builder.add(source, target, length, low.moment[row], code, row, phase=LATE * late)


def _fold(
    low: Lowering, calls: _Calls, instance: Array, source: Array, total: Array, length: Array
) -> None:
    """Reduce regions into the regions `total`, as the first call of each instance says."""
    row = calls.row[calls.start]
    kinds: dict[tuple[int, int], int] = {}
    for key in zip(low.program.site[row].tolist(), calls.size.tolist(), strict=True):
        if key not in kinds:
            kinds[key] = low.builder.code(reduction(low.program.sites[key[0]], key[1]))
    keys = zip(low.program.site[row].tolist(), calls.size.tolist(), strict=True)
    code = np.array([kinds[key] for key in keys], dtype=np.int16)
    row = row[instance]
    low.builder.add(source, total, length, low.moment[row], code[instance], row)


def _all_reduce(low: Lowering, calls: _Calls) -> None:
    ops = low.operands
    mine = ops.first[calls.row]
    total = low.shelf.take(ops.length[mine[calls.start]])[calls.instance]
    _fold(low, calls, calls.instance, ops.address[mine], total, ops.length[mine])
    _move(low, total, ops.address[mine], ops.length[mine], calls.row, late=True)


def _reduce(low: Lowering, calls: _Calls) -> None:
    """What a reduce leaves on ranks other than the root is not defined."""
    ops = low.operands
    mine = ops.first[calls.row]
    total = low.shelf.take(ops.length[mine[calls.start]])
    _fold(low, calls, calls.instance, ops.address[mine], total[calls.instance], ops.length[mine])
    root = calls.roots(low)
    at_root = mine[root]
    _move(low, total, ops.address[at_root], ops.length[at_root], calls.row[root], late=True)
    others = np.ones(len(mine), dtype=np.bool_)
    others[root] = False
    _forget(low, ops.address[mine[others]], ops.length[mine[others]], calls.row[others])


def _forget(low: Lowering, address: Array, length: Array, row: Array) -> None:
    code = low.builder.code(Action(Act.FORGET))
    extra = row.astype(np.uint64)
    low.builder.add(address, address, length, low.moment[row], code, row, phase=LATE, extra=extra)


def _broadcast(low: Lowering, calls: _Calls) -> None:
    ops = low.operands
    mine = ops.first[calls.row]
    root = mine[calls.roots(low)][calls.instance]
    other = np.flatnonzero(mine != root)
    source, target = ops.address[root[other]], ops.address[mine[other]]
    _move(low, source, target, ops.length[mine[other]], calls.row[other])


def _scatter(low: Lowering, calls: _Calls) -> None:
    ops = low.operands
    mine = ops.first[calls.row]
    listed = mine[calls.roots(low)][calls.instance] + 1 + calls.place
    _move(low, ops.address[listed], ops.address[mine], ops.length[mine], calls.row)


def _gather(low: Lowering, calls: _Calls) -> None:
    ops = low.operands
    root = calls.roots(low)[calls.instance]
    mine = ops.first[calls.row] + ops.count[calls.row] - 1
    listed = ops.first[calls.row[root]] + calls.place
    row = calls.row[root]
    _move(low, ops.address[mine], ops.address[listed], ops.length[mine], row)


def _part(ops: Operands, first: Array, listed: Array, place: Array, length: Array) -> Array:
    """The address of part `place` of a list of operands, or of one operand in equal parts."""
    return np.where(
        listed,
        ops.address[np.where(listed, first + place, first)],
        ops.address[first] + place * length,
    )


def _all_gather(low: Lowering, calls: _Calls) -> None:
    ops = low.operands
    one, other = calls.pairs()
    here, there = calls.row[one], calls.row[other]
    source = ops.first[there] + ops.count[there] - 1
    length = ops.length[source]
    listed = ops.count[here] - 1 == calls.size[calls.instance[one]]
    target = _part(ops, ops.first[here], listed, calls.place[other], length)
    _move(low, ops.address[source], target, length, here)


def _reduce_scatter(low: Lowering, calls: _Calls) -> None:
    ops = low.operands
    one, other = calls.pairs()
    there = calls.row[other]
    length = ops.length[ops.first[calls.row]]
    total = low.shelf.take(length)
    listed = ops.count[there] - 1 == calls.size[calls.instance[one]]
    source = _part(ops, ops.first[there] + 1, listed, calls.place[one], length[one])
    _fold(low, calls, calls.instance[one], source, total[one], length[one])
    target = ops.address[ops.first[calls.row]]
    _move(low, total, target, length, calls.row, late=True)


def _all_to_all(low: Lowering, calls: _Calls) -> None:
    ops = low.operands
    one, other = calls.pairs()
    here, there = calls.row[one], calls.row[other]
    size = calls.size[calls.instance[one]]
    half = ops.count[here] // 2
    listed, listed_there = half == size, ops.count[there] // 2 == size
    output, source = ops.first[here], ops.first[there] + ops.count[there] // 2
    place = calls.place[other]
    length = np.where(
        listed, ops.length[np.where(listed, output + place, output)], ops.length[output] // size
    )
    taken = _part(ops, source, listed_there, calls.place[one], length)
    given = _part(ops, output, listed, place, length)
    _move(low, taken, given, length, here)
