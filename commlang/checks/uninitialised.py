"""A temp that is read before it is written (CL232).

A `temp` has no contents until something writes them, and none of those of an earlier iteration:
each time its block is entered it is new. Here an operation reads elements that nothing on this
rank has written: a send of them, a reduction in place, an accumulation into them, or a `reads=`.
What arrives then is whatever was in that memory, and differs from run to run. A tensor parameter
has contents from the start.

Write all of the temp first, with `fill`, a copy, a recv or a `writes=`; or take the temp out of
the loop if an earlier iteration is to leave something there. What a `recv` or the output of a
collective covers need not be filled.

- [torch.empty](https://docs.pytorch.org/docs/2.13/generated/torch.empty.html): uninitialised data
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.branches import apart
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Label, Severity
from commlang.program.atoms import Atoms
from commlang.program.sorting import combine, distinct, stable_order
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.regions import Touches

RULE = Rule(
    "CL232",
    "uninitialised-read",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    temp total: like x
    x -> total, op=sum  # CL232
    all_reduce(total)
    total -> x
""",
        """\
# world: 2
pattern main(x: float32[n], n = 8):
    for step in range(2):
        temp inbox: like x
        if step > 0:
            inbox -> x  # CL232
        x @ 0 -> inbox @ 1
""",
        """\
pattern main(x: float32[n], n = 8):
    temp part: like x
    x[: n // 2] -> part[: n // 2]
    all_reduce(part)  # CL232
    part -> x
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    temp total: like x
    fill(total, 0)
    x -> total, op=sum
    all_reduce(total)
    total -> x
""",
        """\
pattern main(x: float32[n], n = 8):
    temp table: float32[world, n]
    for r in ranks:
        x -> table[r]
    all_reduce(table)
    table[0] -> x
""",
    ),
)

_NEVER = np.iinfo(np.int64).max


@record
class _Read:
    """The first read of a region that lacks values: its row, an operand, and the elements.

    `whole` tells that these are all that is read; `later` is the row that writes the first of them
    after all, _NEVER for none.
    """

    row: int
    operand: int
    low: int
    high: int
    whole: bool
    later: int


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per temp and statement that reads it."""
    temp = _temps(facts.program)
    if not temp.any():
        return
    seen: set[tuple[int, int]] = set()
    for part in facts.regions.portions():
        for read in _of_portion(facts, part, temp):
            buffer = int(facts.program.operands.buffer[read.operand])
            block = facts.program.buffer_of(buffer)
            pair = block.storage, int(facts.program.site[read.row])
            if pair not in seen:
                seen.add(pair)
                yield _report(facts, read)


def _temps(program: Program) -> Array:
    """Per buffer whether it is a temp."""
    local = np.array([block.scope is not None for block in program.buffers], dtype=np.bool_)
    return np.repeat(local, [block.count for block in program.buffers])


def _of_portion(facts: Facts, part: slice, temp: Array) -> Iterator[_Read]:
    regions = facts.regions
    rows = np.flatnonzero(facts.program.count[part] > 0) + part.start
    touches = regions.touches(rows)
    touches = touches.pick(temp[touches.buffer])
    if not len(touches):
        return
    touches, place = regions.by_buffer(touches)
    left = ~_written_at_once(touches, place)[place]
    if left.any():
        yield from _lacking(facts, *_first_of_each(touches.pick(left), place[left]))


def _written_at_once(touches: Touches, place: Array) -> Array:
    """Per place whether its first row writes all that is ever touched there, and reads nothing."""
    start = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
    low = np.minimum.reduceat(touches.low, start)
    high = np.maximum.reduceat(touches.high, start)
    whole = touches.writes[start] & (touches.layout[start] < 0)
    whole &= (touches.low[start] == low) & (touches.high[start] == high)
    at_once = touches.reads & (touches.row == touches.row[start][place])
    return whole & ~np.logical_or.reduceat(at_once, start)


def _first_of_each(touches: Touches, place: Array) -> tuple[Touches, Array, Array, Array]:
    """Each region once, with the rows that first write and first read it (_NEVER for none)."""
    key = combine(
        [
            (place, int(place.max(initial=0)) + 1),
            (touches.low, int(touches.low.max(initial=0)) + 1),
            (touches.high, int(touches.high.max(initial=0)) + 1),
            (touches.layout + 1, int(touches.layout.max(initial=0)) + 2),
        ]
    )
    order = stable_order(key)
    key, touches, place = key[order], touches.pick(order), place[order]
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    row, count = touches.row.astype(np.int64), np.diff(np.append(start, len(key)))
    written = np.minimum.reduceat(np.where(touches.writes, row, _NEVER), start)
    read = np.minimum.reduceat(np.where(touches.reads, row, _NEVER), start)
    # The entry that reads first stands for the region: it is what a finding shows.
    chosen = np.flatnonzero(touches.reads & (row == np.repeat(read, count)))
    stands = start.copy()
    stands[np.repeat(np.arange(len(start)), count)[chosen[::-1]]] = chosen[::-1]
    return touches.pick(stands), place[stands], written, read


def _lacking(
    facts: Facts, touches: Touches, place: Array, written: Array, read: Array
) -> Iterator[_Read]:
    """The regions that are read before all of their elements are written."""
    needed = np.zeros(int(place.max(initial=0)) + 1, dtype=np.bool_)
    needed[place[read < _NEVER]] = True
    chosen = np.flatnonzero(needed[place])
    if not len(chosen):
        return
    touches, place = touches.pick(chosen), place[chosen]
    written, read = written[chosen], read[chosen]
    runs = facts.regions.runs(touches)
    atoms = Atoms.of(place[runs.item], runs.low, runs.high)
    first = np.full(len(atoms), _NEVER)
    for piece, atom in atoms.pieces():
        np.minimum.at(first, atom, written[runs.item[piece]])
    read[distinct(runs.item[runs.rough])] = _NEVER  # too many runs to tell what of it is read
    for piece, atom in atoms.pieces():
        item = runs.item[piece]
        lacks = np.flatnonzero((first[atom] >= read[item]) & (read[item] < _NEVER))
        row, later = read[item[lacks]], first[atom[lacks]]
        known = later < _NEVER
        beside = np.zeros(len(lacks), dtype=np.bool_)  # then the two branches overlap: CL230
        beside[known] = apart(facts, row[known], later[known])
        yield from _reads(facts, touches, atoms, item[lacks[~beside]], atom[lacks[~beside]], first)


def _reads(
    facts: Facts, touches: Touches, atoms: Atoms, item: Array, atom: Array, first: Array
) -> Iterator[_Read]:
    """One for each statement: the read that comes first, and the first elements that it lacks."""
    site = facts.program.site[touches.row[item]]
    for each in distinct(site).tolist():
        here = np.flatnonzero(site == each)
        here = here[item[here] == item[here[np.argmin(touches.row[item[here]])]]]
        gap = np.flatnonzero(np.diff(atom[here]) != 1)
        last = here[gap[0]] if len(gap) else here[-1]
        chosen = int(item[here[0]])
        low, high = atoms.elements(int(atom[here[0]]))[0], atoms.elements(int(atom[last]))[1]
        whole = touches.layout[chosen] < 0 and low == touches.low[chosen]
        yield _Read(
            int(touches.row[chosen]),
            int(touches.operand[chosen]),
            low,
            high,
            bool(whole and high == touches.high[chosen]),
            int(first[atom[here[0]]]),
        )


def _report(facts: Facts, read: _Read) -> Diagnostic:
    program = facts.program
    block = program.buffer_of(int(program.operands.buffer[read.operand]))
    what = f"`{block.name}`" if read.whole else f"part of `{block.name}`"
    message = f"{what} is read on {facts.event(read.row)} before anything is written there"
    labels = [facts.label(read.row), Label(block.source, block.span, "a temp, without contents")]
    if read.row < read.later < _NEVER:
        labels.append(facts.label(read.later, "written only here"))
    notes = ["what it holds is whatever was in that memory before"]
    if not read.whole:
        many = read.high - read.low
        place = f"element {read.low}" if many == 1 else f"elements {read.low} to {read.high - 1}"
        verb = "has" if many == 1 else "have"
        notes.insert(0, f"{place} of `{block.name}`, counted from 0, {verb} no value yet")
    hint = f"write all of it first, for example `fill({block.name}, 0)`"
    return Diagnostic(RULE.code, message, tuple(labels), tuple(notes), hint)
