"""Which data rows have: what the rules on speed share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from commlang.checks.facts import Facts
    from commlang.program.columns import Array
    from commlang.program.regions import Touches


def bytes_of(facts: Facts, rows: Array) -> Array:
    """The bytes of each row's longest side: what it names, its output or its input."""
    program = facts.program
    itemsize = np.array([d.itemsize if d else 0 for d in program.site_dtype], dtype=np.int64)
    upto = np.concatenate([[0], np.cumsum(program.operands.length)])
    first = np.maximum(program.first[rows], 0)
    total = upto[first + program.count[rows]] - upto[first]
    return total * itemsize[program.site[rows]]


def touching(facts: Facts, buffers: Array) -> Touches:
    """Everything that touches some buffers."""
    program = facts.program
    wanted = np.zeros(int(program.operands.buffer.max(initial=0)) + 1, dtype=np.bool_)
    wanted[buffers] = True
    upto = np.concatenate([[0], np.cumsum(wanted[program.operands.buffer])])
    first = np.maximum(program.first, 0)
    rows = np.flatnonzero(upto[first + program.count] > upto[first])
    touches = facts.regions.touches(rows)
    return touches.pick(wanted[touches.buffer])


def is_temp(facts: Facts, buffer: int) -> bool:
    """Whether nobody outside of the pattern sees a buffer."""
    return facts.program.buffer_of(buffer).scope is not None


def first_instances(facts: Facts, kind: int) -> list[tuple[int, Array]]:
    """For each statement of a kind of collective, its number and the calls of its first instance.

    Only instances that all members call by that statement count.
    """
    program, calls = facts.program, facts.collectives
    found: dict[int, Array] = {}
    if len(calls.start) < 2:
        return []
    site = program.site[calls.row]
    first = site[calls.start[:-1]]
    same = np.minimum.reduceat(site, calls.start[:-1]) == first
    same &= np.maximum.reduceat(site, calls.start[:-1]) == first
    chosen = np.flatnonzero(same & calls.whole & (program.site_kind[first] == kind))
    for number in chosen[np.argsort(first[chosen], kind="stable")].tolist():
        each = int(first[number])
        if each not in found and calls.start[number + 1] - calls.start[number] > 1:
            found[each] = calls.row[calls.start[number] : calls.start[number + 1]]
    return list(found.items())
