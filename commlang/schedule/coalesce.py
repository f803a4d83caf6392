"""Coalescing: small collectives that a group starts one right after the other become one.

They have to be of one kind, op, dtype and root, and neighbours on every member. Then making one of
them contracts neighbours in the order of every rank, which makes no cycle where there was none.
Each is over when all of a bucket are.

Sums of floats among more than two ranks may be rounded otherwise than one by one, since a backend
adds the elements of a buffer in an order that depends on their place in it. All else is the same to
the bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind, ReduceOp
from commlang.program.matching import match_collectives
from commlang.records import record
from commlang.schedule.linear import Act, Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.matching import Collectives

SMALL = 64 << 10
"""Bytes up to which a collective is put into a bucket; `benchmarks/schedule.py` measures it."""
FULL = 1 << 20
"""Bytes that a bucket holds at most."""
MOST = 100_000
"""Buckets that a plan lists at most."""

_KINDS = (Kind.ALL_REDUCE, Kind.BROADCAST)


@record
class Bucket:
    """`count` calls on a group from the one with number `turn` on."""

    group: int
    turn: int
    count: int


def buckets(program: Program) -> list[Bucket] | str:
    """What can be coalesced in a program of all ranks; or why nothing is."""
    calls = match_collectives(program)
    if len(calls.start) < 3:
        return "no two collectives are neighbours"
    size = _sizes(program, calls)
    linked = _linked(program, calls) & (size[1:] <= SMALL) & (size[:-1] <= SMALL)
    found = _filled(calls, linked, size)
    if not found:
        return "no two small collectives of one kind are neighbours on all ranks"
    if len(found) > MOST:
        return f"there would be {len(found):,} buckets, more than a plan lists ({MOST:,})"
    return found


def fused(
    program: Program, rank: int, actions: list[Action], listed: Sequence[Bucket]
) -> list[Action]:
    """The actions of a rank with the starts of each bucket made one."""
    if not listed:
        return actions
    first = members(program, rank, listed)
    result: list[Action] = []
    for action in actions:
        last = result[-1] if result else None
        if last and action.act is Act.START and first.get(action.row) == last.row:
            result[-1] = Action(Act.START, last.row, (*last.rows, *action.rows))
        else:
            result.append(action)
    return result


def members(program: Program, rank: int, listed: Sequence[Bucket]) -> dict[int, int]:
    """For each row of a rank that is in a bucket, the first row of that."""
    mine = program.rows_of(rank)
    calls: dict[int, list[int]] = {}
    for row in (
        mine.start + np.flatnonzero(program.is_collective[mine.start : mine.stop])
    ).tolist():
        calls.setdefault(int(program.group[row]), []).append(row)
    found: dict[int, int] = {}
    for bucket in listed:
        inside = calls.get(bucket.group, [])[bucket.turn : bucket.turn + bucket.count]
        found.update(dict.fromkeys(inside, inside[0] if inside else -1))
    return found


def _linked(program: Program, calls: Collectives) -> Array:
    """Per instance but the last: whether the next one may share a bucket with it."""
    start = calls.start[:-1]
    first = calls.row[start]
    site = program.site[first]
    alike = np.array([_likeness(program, int(number)) for number in range(len(program.sites))])
    start_size = np.diff(calls.start)
    good = np.array([s.asynchronous and s.kind in _KINDS for s in program.sites], dtype=np.bool_)
    plain = np.logical_and.reduceat(
        good[program.site[calls.row]] & (program.nest[calls.row] < 0), start
    )
    same = np.minimum.reduceat(alike[program.site[calls.row]], start) == alike[site]
    same &= np.maximum.reduceat(alike[program.site[calls.row]], start) == alike[site]
    fits = plain & same & calls.whole
    link = fits[:-1] & fits[1:] & (alike[site][:-1] == alike[site][1:])
    link &= (calls.group[:-1] == calls.group[1:]) & (calls.turn[:-1] + 1 == calls.turn[1:])
    link &= (start_size[:-1] == start_size[1:]) & (
        program.peer[first][:-1] == program.peer[first][1:]
    )
    return link & _neighbours(calls, link)


def _neighbours(calls: Collectives, link: Array) -> Array:
    """Whether, on every member, the calls of linked instances stand one after the other."""
    result = np.zeros(len(link), dtype=np.bool_)
    for number in np.flatnonzero(link).tolist():
        low, middle, high = calls.start[number : number + 3].tolist()
        result[number] = bool((calls.row[low:middle] + 1 == calls.row[middle:high]).all())
    return result


def _likeness(program: Program, number: int) -> int:
    """Sites with equal numbers go together."""
    site = program.sites[number]
    if site.op is not None and site.op.op is ReduceOp.PREMUL_SUM:
        return -1 - number
    for other, known in enumerate(program.sites[:number]):
        if (known.kind, known.op, known.dtype) == (site.kind, site.op, site.dtype):
            return other
    return number


def _sizes(program: Program, calls: Collectives) -> Array:
    """The bytes of each instance, as its first member sees them."""
    first = calls.row[calls.start[:-1]]
    itemsize = np.array([d.itemsize if d else 0 for d in program.site_dtype], dtype=np.int64)
    operand = np.maximum(program.first[first], 0)
    length = program.operands.length
    elements = length[operand] if len(length) else np.zeros(len(first), dtype=np.int64)
    return np.where(program.first[first] < 0, FULL, elements * itemsize[program.site[first]])


def _filled(calls: Collectives, linked: Array, size: Array) -> list[Bucket]:
    found: list[Bucket] = []
    at = 0
    while at < len(linked):
        if not linked[at]:
            at += 1
            continue
        end, total = at + 1, int(size[at])
        while end <= len(linked) and linked[end - 1] and total + int(size[end]) <= FULL:
            total += int(size[end])
            end += 1
        if end - at > 1:
            found.append(Bucket(int(calls.group[at]), int(calls.turn[at]), end - at))
        at = end
    return found
