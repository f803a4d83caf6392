"""Overlap (CL230): branches of one `parallel:` that touch the same elements, one of them writing.

The children of a `parallel:` run together and nothing is copied aside first: what a send reads
while a recv writes it may be the old value, the new one or a mixture. Views that alias count as
what they are, elements of one buffer. (Accumulations of transfers, `x @ a -> y @ b, op=sum`, are
applied after the block, in the order of the text, and do not overlap.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.ordering import levels
from commlang.diagnostics import Diagnostic
from commlang.program.sorting import combine, distinct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array, Program

CODES = ("CL230",)
_PORTION = 1 << 17
_EXACT = 1 << 20
"""Strided views of up to so many elements are compared element by element."""


_Conflict = tuple[int, int, int]
"""Two rows, and an operand of the second that overlaps one of the first."""


@dataclass(frozen=True, slots=True)
class _Touch:
    """Operands of rows inside one level of constructs, sorted by place and first element."""

    row: Array
    branch: Array
    operand: Array
    low: Array
    high: Array
    write: Array
    place: Array


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements."""
    program = facts.program
    seen: set[tuple[int, ...]] = set()
    for rows in _portions(program):
        for branch, construct in levels(facts, rows):
            here = construct >= 0
            touch = _touches(program, rows[here], branch[here], construct[here])
            for first, second, operand in _conflicts(program, touch):
                pair = tuple(sorted((int(program.site[first]), int(program.site[second]))))
                if pair not in seen:
                    seen.add(pair)
                    yield _report(facts, first, second, operand)


def _portions(program: Program) -> Iterator[Array]:
    """The rows inside constructs, some ranks at a time: a portion stays in the cache."""
    start = 0
    for stop in program.rank_start[1:].tolist():
        if stop - start >= _PORTION or stop == len(program):
            part = slice(start, stop)
            inside = (program.nest[part] >= 0) & (program.count[part] > 0)
            yield np.flatnonzero(inside) + start
            start = stop


def _touches(program: Program, rows: Array, branch: Array, construct: Array) -> _Touch:
    counts = program.count[rows]
    owner = np.repeat(np.arange(len(rows)), counts)
    ends = np.cumsum(counts)
    within = np.arange(len(owner)) - np.repeat(ends - counts, counts)
    operand = program.first[rows][owner] + within
    ops = program.operands
    low = ops.offset[operand]
    high = low + ops.length[operand]
    for number, (shape, strides) in enumerate(ops.layouts):
        strided = ops.layout[operand] == number
        extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
        high[strided] = np.where(high[strided] > low[strided], low[strided] + extent, low[strided])
    buffer = ops.buffer[operand]
    place = combine(
        [
            (program.rank[rows][owner].astype(np.int64), program.world),
            (construct[owner], int(construct.max(initial=0)) + 1),
            (buffer.astype(np.int64), int(buffer.max(initial=0)) + 1),
        ]
    )
    some = high > low
    order = np.flatnonzero(some)[np.lexsort((low[some], place[some]))]
    columns = (rows[owner], branch[owner], operand, low, high, ops.access[operand] > 0, place)
    return _Touch(*(column[order] for column in columns))


def _conflicts(program: Program, touch: _Touch) -> Iterator[_Conflict]:
    """Pairs of rows that overlap; places where no interval reaches into the next are skipped."""
    if len(touch.row) < 2:
        return
    fresh = np.concatenate([[True], touch.place[1:] != touch.place[:-1]])
    number = np.cumsum(fresh) - 1
    span = int(touch.high.max()) + 1
    reach = np.maximum.accumulate(touch.high + number * span) - number * span
    overlaps = np.zeros(len(touch.row), dtype=np.bool_)
    overlaps[1:] = ~fresh[1:] & (touch.low[1:] < reach[:-1])
    written = np.bincount(number, weights=touch.write) > 0
    starts = np.append(np.flatnonzero(fresh), len(touch.row))
    for group in distinct(number[overlaps & written[number]]).tolist():
        yield from _sweep(program, touch, int(starts[group]), int(starts[group + 1]))


def _sweep(program: Program, touch: _Touch, start: int, stop: int) -> Iterator[_Conflict]:
    """Walk the intervals of one buffer by their first element, with those still open."""
    open_ones: list[int] = []
    for i in range(start, stop):
        open_ones = [j for j in open_ones if touch.high[j] > touch.low[i]]
        for j in open_ones:
            apart = touch.branch[i] != touch.branch[j]
            if apart and (touch.write[i] or touch.write[j]) and _meet(program, touch, i, j):
                yield int(touch.row[j]), int(touch.row[i]), int(touch.operand[i])
                return
        open_ones.append(i)


def _meet(program: Program, touch: _Touch, i: int, j: int) -> bool:
    """Whether two operands whose spans overlap share an element."""
    one, two = (_elements(program, int(touch.operand[k])) for k in (i, j))
    if one is None or two is None:
        return True
    return bool(np.isin(one, two).any())


def _elements(program: Program, operand: int) -> Array | None:
    ops = program.operands
    offset, length, layout = (int(c[operand]) for c in (ops.offset, ops.length, ops.layout))
    if length > _EXACT:
        return None
    if layout < 0:
        return np.arange(offset, offset + length)
    elements = np.array([offset])
    for size, stride in zip(*ops.layouts[layout], strict=True):
        elements = (elements[:, None] + np.arange(size) * stride).reshape(-1)
    return elements


def _report(facts: Facts, first: int, second: int, operand: int) -> Diagnostic:
    program = facts.program
    name = program.buffer_of(int(program.operands.buffer[operand])).name
    message = f"two branches of one `parallel:` touch the same data on {facts.event(first)}"
    labels = (facts.label(first), facts.label(second, "at the same time"))
    why = "one of them writes: what the other sees is left to chance"
    hint = f"give one of them a buffer of its own, such as `temp inbox: like {name}`"
    return Diagnostic("CL230", message, labels, (why,), hint)
