"""An operation whose outputs overlap, or overlap what it reads (CL234).

Two outputs that share elements get both values, and the last one stays: an all_gather into one
tensor several times ends with the last rank's part. An output that shares elements with an input
overwrites what is still to be read: `all_to_all_single(x, x)` sends parts that have just arrived,
and torch refuses to copy between views that overlap in part.

These forms in place are right: `all_gather` and `all_gather_into_tensor` with the rank's own part
of the output as input, `reduce_scatter` and `reduce_scatter_tensor` with the rank's own part of
the input as output, `gather`, `scatter` and `all_to_all` with the root's, or the rank's, own entry
on both sides, and a copy of a view onto itself. gloo copies what it reads in an `all_gather`, a
`gather`, an `all_to_all` of lists and a `reduce_scatter_tensor`, so with `--backend gloo` any
input may alias there; NCCL asks for the rank's own part.

Give the operation an output of its own, such as a `temp`, and copy from there.

- [NCCL, in-place operations](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/inplace.html)
- [pytorch issue 18689](https://github.com/pytorch/pytorch/issues/18689): all_gather into one tensor
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commlang.checks.branches import meeting
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.program.atoms import Atoms
from commlang.program.regions import Regions, places
from commlang.program.sorting import distinct
from commlang.transports import Backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.regions import Touches

RULE = Rule(
    "CL234",
    "aliased-operands",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    all_gather([y for r in ranks], x)  # CL234
""",
        """\
pattern main(x: float32[n], n = 8):
    all_to_all_single(x, x)  # CL234
""",
        """\
pattern main(x: float32[n], n = 8):
    x[: n - 2] -> x[2:]  # CL234
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    let c = x.chunks(world)
    all_gather(c, c[rank])
    all_gather_into_tensor(x, c[rank])
    reduce_scatter_tensor(c[rank], x)
""",
        """\
# backend: gloo
pattern main(x: float32[n], n = 8):
    all_gather_into_tensor(x, x.chunks(world)[0])
""",
    ),
)


class _Alias(NamedTuple):
    """A row and two of its operands that share elements."""

    row: int
    one: int
    other: int


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    seen: set[int] = set()
    for part in facts.regions.portions():
        for alias in _of_portion(facts, part):
            site = int(facts.program.site[alias.row])
            if site not in seen:
                seen.add(site)
                yield _report(facts, alias)


def _of_portion(facts: Facts, part: slice) -> Iterator[_Alias]:
    rows = _suspects(facts.program, part)
    if not len(rows):
        return
    touches = facts.regions.touches(rows)
    touches = touches.pick(~np.isin(touches.operand, _harmless(facts, rows)))
    row, buffer = touches.row.astype(np.int64) - part.start, touches.buffer.astype(np.int64)
    columns = [(row, part.stop - part.start), (buffer, int(buffer.max(initial=0)) + 1)]
    order, place = places(columns)
    touches = touches.pick(order)
    disorder = (place[1:] == place[:-1]) & (touches.low[1:] < touches.high[:-1])
    if not disorder.any():
        return  # the operands of each row lie one behind the other
    mixed = np.zeros(int(place[-1]) + 1, dtype=np.bool_)
    mixed[place[1:][disorder]] = True
    kept = np.flatnonzero(mixed[place])
    touches, place = touches.pick(kept), place[kept]
    runs = facts.regions.runs(touches)
    exact = ~runs.rough
    item = runs.item[exact]
    atoms = Atoms.of(place[item], runs.low[exact], runs.high[exact])
    written, touched = (np.zeros(len(atoms), dtype=np.int32) for _ in range(2))
    for piece, atom in atoms.pieces():
        touched += np.bincount(atom, minlength=len(atoms))
        written += np.bincount(atom[touches.writes[item[piece]]], minlength=len(atoms))
    shared = (written > 0) & (touched > 1)
    hit = np.zeros(len(touches), dtype=np.bool_)
    for piece, atom in atoms.pieces():
        hit[item[piece[shared[atom]]]] = True
    site = facts.program.site[touches.row]
    for each in distinct(site[hit]).tolist():
        yield _first(facts, touches, place, int(np.flatnonzero(hit & (site == each))[0]))


def _suspects(program: Program, part: slice) -> Array:
    """Rows with several operands; of two, only if they are in one buffer and their spans meet."""
    several = (program.count[part] > 1) & (program.kind[part] != Kind.COMPUTE)
    rows = np.flatnonzero(several) + part.start
    first, buffer = program.first[rows], program.operands.buffer
    near = (program.count[rows] > 2) | (buffer[first] == buffer[first + 1])
    return rows[near]


def _first(facts: Facts, touches: Touches, place: Array, item: int) -> _Alias:
    near = (place == place[item]) & (touches.writes | touches.writes[item])
    near[item] = False
    other = next(meeting(facts.regions, touches, item, np.flatnonzero(near)))
    one, other = sorted((int(touches.operand[item]), int(touches.operand[other])))
    return _Alias(int(touches.row[item]), one, other)


def _harmless(facts: Facts, rows: Array) -> Array:
    """Operands that may be read where the row writes: in place, or since gloo copies them first."""
    program = facts.program
    local = program.kind[rows] >= Kind.COPY
    found = [_copies(program, rows[local]), _in_place(program, rows[~local])]
    if facts.target.backend is Backend.GLOO:
        found.append(_copied_by_gloo(program, rows[~local]))
    return np.concatenate(found)


def _copies(program: Program, rows: Array) -> Array:
    """The sources of arrows from a view to the same one."""
    rows = rows[program.kind[rows] <= Kind.ACCUMULATE]
    ops, source = program.operands, program.first[rows]
    same = [c[source] == c[source + 1] for c in (ops.buffer, ops.offset, ops.length, ops.layout)]
    return source[np.logical_and.reduce(same)]


def _in_place(program: Program, rows: Array) -> Array:
    """Inputs of collectives where output and input are the rank's own part of the other.

    With lists it is the own entry that may be on both sides, with one long tensor its own part.
    """
    kind, count, first = program.kind[rows], program.count[rows], program.first[rows]
    group = program.group[rows].astype(np.int64)
    own = np.asarray(program.groups.position(group, program.rank[rows]))
    last, half = first + count - 1, first + count // 2
    flat = (count == 2) & np.isin(kind, (Kind.ALL_GATHER, Kind.REDUCE_SCATTER))
    inward = (kind == Kind.ALL_GATHER) | (kind == Kind.GATHER)
    exchange = kind == Kind.ALL_TO_ALL
    entry = np.where(flat, 0, own)
    reads = np.where(inward, last, np.where(exchange, half + entry, first + 1 + entry))
    writes = np.where(inward | exchange, first + entry, first)
    size = np.asarray(program.groups.size(group))
    inside = (reads <= last) & ~(exchange & (count < 2 * size))  # all_to_all_single has no entries
    kind, flat, own = kind[inside], flat[inside], own[inside]
    reads, writes = reads[inside], writes[inside]
    ops = program.operands
    gathers = kind == Kind.ALL_GATHER
    piece, whole = np.where(gathers, reads, writes), np.where(gathers, writes, reads)
    start = ops.offset[whole] + np.where(flat, own * ops.length[piece], 0)
    fits = (ops.buffer[piece] == ops.buffer[whole]) & (ops.offset[piece] == start)
    fits &= flat | (ops.length[piece] == ops.length[whole])
    return reads[fits]


def _copied_by_gloo(program: Program, rows: Array) -> Array:
    """All inputs of the collectives that gloo copies (measured with torch 2.13)."""
    names = np.array([site.name for site in program.sites])
    copied = np.isin(names, _COPIED)[program.site[rows]]
    touches = Regions(program).touches(rows[copied])
    return touches.operand[~touches.writes]


_COPIED = (
    "gather",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
    "reduce_scatter_tensor",
    "reduce_scatter_single",
    "all_to_all",
)


def _report(facts: Facts, alias: _Alias) -> Diagnostic:
    program = facts.program
    site = program.site_of(alias.row)
    name = program.buffer_of(int(program.operands.buffer[alias.one])).name
    what = "the arrow" if site.kind in (Kind.COPY, Kind.ACCUMULATE) else site.name
    where = facts.event(alias.row)
    if program.operands.access[[alias.one, alias.other]].min() > 0:
        message = f"two outputs of {what} share elements of `{name}` on {where}"
        why = "both are written there, and only one value stays"
    else:
        message = f"{what} reads and writes the same elements of `{name}` on {where}"
        why = _harm(site.kind)
    return Diagnostic(RULE.code, message, (facts.label(alias.row),), (why,), _advice(site.kind))


def _harm(kind: Kind) -> str:
    if kind in (Kind.COPY, Kind.ACCUMULATE):
        return "torch refuses views that overlap in part, or mixes old and new values"
    if kind is Kind.EXTERN:
        return "it says that it only reads one of them, and writes it through the other"
    return "what it writes there may overwrite what it still has to read"


def _advice(kind: Kind) -> str:
    if kind in (Kind.ALL_GATHER, Kind.GATHER):
        return "give it other outputs; in place, the input is the rank's own part of the output"
    if kind in (Kind.REDUCE_SCATTER, Kind.SCATTER):
        return "give it an output of its own; in place, that is the rank's own part of the input"
    if kind is Kind.EXTERN:
        return "give it tensors of their own, or declare one parameter, as `update`"
    return "write into a `temp`, then copy from there"
