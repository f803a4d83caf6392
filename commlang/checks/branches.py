"""Branches of one `parallel:` that touch the same elements: what the rules on them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commlang.checks.ordering import around, levels
from commlang.program.atoms import Atoms
from commlang.program.regions import places
from commlang.program.sorting import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array
    from commlang.program.regions import Regions, Touches

_NEVER = np.iinfo(np.int64).max


class Conflict(NamedTuple):
    """Two rows that meet in elements of a buffer, and an operand of each that holds them."""

    first: int
    second: int
    one: int
    other: int


def apart(facts: Facts, rows: Array, others: Array) -> Array:
    """Per pair of rows of one rank, whether they stand in two branches of one `parallel:`."""
    result = np.zeros(len(rows), dtype=np.bool_)
    if not len(rows) or not ((facts.program.nest[rows] >= 0).any()):
        return result
    theirs = list(levels(facts, others))
    for branch, construct in levels(facts, rows):
        for other, same in theirs:
            result |= (construct >= 0) & (construct == same) & (branch != other)
    return result


def conflicts(facts: Facts, touches: Touches) -> Iterator[Conflict]:
    """Touches in different branches of one construct that meet, one of them writing.

    For each statement that has such a meeting, one is found.
    """
    each, branch, construct = around(facts, touches.row)
    buffer = touches.buffer[each].astype(np.int64)
    columns = [
        (facts.program.rank[touches.row[each]].astype(np.int64), facts.program.world),
        (construct, int(construct.max(initial=0)) + 1),
        (buffer, int(buffer.max(initial=0)) + 1),
    ]
    order, place = places(columns)
    # In a place of their own are the touches of one buffer inside one construct on one rank.
    inside, branch = touches.pick(each[order]), branch[order]
    close = _close(inside, branch, place)
    yield from _met(facts, inside.pick(close), branch[close], place[close])


def _close(touches: Touches, branch: Array, place: Array) -> Array:
    """The touches of places where two branches meet by what they span, and something writes."""
    if not len(place):
        return place.astype(np.bool_)
    count = int(place[-1]) + 1
    written = np.zeros(count, dtype=np.bool_)
    written[place[touches.writes]] = True
    several = np.zeros(count, dtype=np.bool_)
    several[place[1:][(place[1:] == place[:-1]) & (branch[1:] != branch[:-1])]] = True
    chosen = np.flatnonzero((written & several)[place])
    found = np.zeros(len(place), dtype=np.bool_)
    if len(chosen):
        low, high, place = touches.low[chosen], touches.high[chosen], place[chosen]
        order = np.lexsort((low, place))
        low, high, place = low[order], high[order], place[order]
        span = int(high.max()) + 1
        reach = np.maximum.accumulate(high + place * span) - place * span
        meets = np.zeros(count, dtype=np.bool_)
        meets[place[1:][(place[1:] == place[:-1]) & (low[1:] < reach[:-1])]] = True
        found[chosen] = meets[place]
    return found


def _met(facts: Facts, touches: Touches, branch: Array, place: Array) -> Iterator[Conflict]:
    if not len(touches):
        return
    runs = facts.regions.runs(touches)
    exact = ~runs.rough
    item = runs.item[exact]
    atoms = Atoms.of(place[item], runs.low[exact], runs.high[exact])
    number = np.searchsorted(distinct(branch), branch)
    lowest, highest = np.full((2, len(atoms)), _NEVER), np.full((2, len(atoms)), -1)
    for piece, atom in atoms.pieces():
        branches, writes = number[item[piece]], touches.writes[item[piece]]
        for kind, chosen in enumerate((slice(None), writes)):
            np.minimum.at(lowest[kind], atom[chosen], branches[chosen])
            np.maximum.at(highest[kind], atom[chosen], branches[chosen])
    hit = np.zeros(len(touches), dtype=np.bool_)
    for piece, atom in atoms.pieces():
        mine = item[piece]
        kind = np.where(touches.writes[mine], 0, 1)
        low, high = lowest[kind, atom], highest[kind, atom]
        hit[mine[(high >= 0) & ((low != number[mine]) | (high != number[mine]))]] = True
    site = facts.program.site[touches.row]
    for each in distinct(site[hit]).tolist():
        item = int(np.flatnonzero(hit & (site == each))[0])
        yield _partner(facts.regions, touches, branch, place, item)


def _partner(
    regions: Regions, touches: Touches, branch: Array, place: Array, item: int
) -> Conflict:
    """The first of another branch that meets a touch of which it is known that one does."""
    near = (place == place[item]) & (branch != branch[item])
    near &= touches.writes | touches.writes[item]
    other = next(iter(meeting(regions, touches, item, np.flatnonzero(near))))
    one, other = sorted((item, other), key=lambda i: int(touches.row[i]))
    row, operand = touches.row, touches.operand
    return Conflict(int(row[one]), int(row[other]), int(operand[one]), int(operand[other]))


def meeting(regions: Regions, touches: Touches, item: int, others: Array) -> Iterator[int]:
    """Those of some other touches of the same place that share an element with one."""
    spans = (touches.low[others] < touches.high[item]) & (touches.low[item] < touches.high[others])
    others = others[spans]
    if not len(others):
        return
    runs = regions.runs(touches.pick(np.append(others, item)))
    mine = (runs.item == len(others)) & ~runs.rough
    low, high = runs.low[mine], runs.high[mine]
    theirs = (runs.item < len(others)) & ~runs.rough
    # Runs of one view are sorted and apart, so the first that ends behind a run's start decides.
    at = np.searchsorted(high, runs.low[theirs], side="right")
    shares = at < len(low)
    shares[shares] = low[at[shares]] < runs.high[theirs][shares]
    yield from others[distinct(runs.item[theirs][shares])].tolist()
