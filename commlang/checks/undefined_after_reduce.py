"""What a reduce has left behind is read (CL233).

`reduce` gives its result to one rank. On all others it leaves the tensor undefined: gloo uses it
for partial sums, so that a rank may find its own values, a partial sum or the whole sum there,
depending on the algorithm, the size and the number of ranks; other backends leave it alone. Here a
rank that is not `dst` reads it afterwards, before anything has overwritten it.

Use `all_reduce` if all ranks need the result; let only `dst` go on with it (`if rank == …:`); or
reduce a copy, if the rank's own values are still needed.

- [pytorch issue 21480](https://github.com/pytorch/pytorch/issues/21480)
- [torch.distributed.reduce](https://docs.pytorch.org/docs/2.13/distributed.html): "Only the
  process with rank dst is going to receive the final result"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commlang.checks.branches import apart, meeting
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.program.atoms import Atoms, Latest
from commlang.program.sorting import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.regions import Touches

RULE = Rule(
    "CL233",
    "undefined-after-reduce",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    reduce(x, dst=0)
    x -> y  # CL233
""",
        """\
pattern main(x: float32[n], n = 8):
    for root in range(2):
        reduce(x, dst=root)  # CL233
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    reduce(x, dst=0)
    if rank == 0:
        x -> y
""",
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    reduce(x, dst=0)
    broadcast(x, src=0)
    x -> y
""",
    ),
)

_NEVER = np.iinfo(np.int64).max


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements."""
    program = facts.program
    if not (program.site_kind == Kind.REDUCE).any():
        return
    seen: set[tuple[int, int]] = set()
    for part in facts.regions.portions():
        for reduce, read, operand in _of_portion(facts, part):
            pair = int(program.site[reduce]), int(program.site[read])
            if pair not in seen:
                seen.add(pair)
                yield _report(facts, reduce, read, operand)


class _Moments(NamedTuple):
    """Touches of places with a reduce, by place and moment: a row, mostly that of the touch.

    An asynchronous reduce leaves its data undefined at its wait; what touches them before is a
    race. So it stands there twice, the second time with the row of its wait as the moment.
    """

    touches: Touches
    place: Array
    moment: Array
    leaves: Array
    """Whether it leaves the data undefined at that moment."""
    defines: Array
    reads: Array


def _of_portion(facts: Facts, part: slice) -> Iterator[tuple[int, int, int]]:
    """A reduce, a row that reads what it left, and the operand with which."""
    program, regions = facts.program, facts.regions
    leaf = (program.kind[part] == Kind.REDUCE) & (program.rank[part] != program.peer[part])
    if not leaf.any():
        return
    rows = np.flatnonzero(program.count[part] > 0) + part.start
    touches, place = regions.by_buffer(regions.touches(rows))
    leaves = leaf[touches.row - part.start]
    since = np.full(int(place[-1]) + 1 if len(place) else 0, _NEVER)
    np.minimum.at(since, place[leaves], touches.row[leaves])
    kept = np.flatnonzero(touches.row >= since[place])
    yield from _reads(facts, _moments(program, touches.pick(kept), place[kept], leaves[kept]))


def _moments(program: Program, touches: Touches, place: Array, leaves: Array) -> _Moments:
    late = leaves & program.site_async[program.site[touches.row]]
    again = np.flatnonzero(late & (program.wait[touches.row] >= 0))
    each = np.concatenate([np.arange(len(place)), again])
    second = np.arange(len(each)) >= len(place)
    row = touches.row[each]
    moment = np.where(second, program.wait[row], row).astype(np.int64)
    order = np.lexsort((moment, place[each]))
    each, second, moment = each[order], second[order], moment[order]
    return _Moments(
        touches.pick(each),
        place[each],
        moment,
        leaves[each] & (second | ~late[each]),
        touches.writes[each] & ~leaves[each],
        touches.reads[each] & ~second,
    )


def _reads(facts: Facts, here: _Moments) -> Iterator[tuple[int, int, int]]:
    """For each statement that reads undefined elements, the first time that it does."""
    touches, place, moment, *_ = here
    runs = facts.regions.runs(touches)
    exact = ~runs.rough
    item = runs.item[exact]
    atoms = Atoms.of(place[item], runs.low[exact], runs.high[exact])
    undefined, defined = Latest(atoms), Latest(atoms)
    none = np.zeros(0, dtype=np.int64)
    hits: list[Array] = [none]
    for piece, atom in atoms.pieces():
        each = item[piece]
        when = moment[each]
        lost = undefined.before(atom, when, np.where(here.leaves[each], when, -1))
        found = defined.before(atom, when, np.where(here.defines[each], when, -1))
        bad = np.flatnonzero(here.reads[each] & (lost > found))
        beside = apart(facts, when[bad], lost[bad])  # then two branches overlap: CL230
        hits.append(each[bad[~beside]])
    hit = distinct(np.concatenate(hits))
    site = facts.program.site[touches.row[hit]]
    for each in distinct(site).tolist():
        mine = hit[site == each]
        read = int(mine[np.argmin(touches.row[mine])])
        yield _left_by(facts, here, read), int(touches.row[read]), int(touches.operand[read])


def _left_by(facts: Facts, here: _Moments, read: int) -> int:
    """The last reduce before a row that left some of what it reads undefined."""
    touches, place, moment = here.touches, here.place, here.moment
    near = here.leaves & (place == place[read]) & (moment < moment[read])
    found = list(meeting(facts.regions, touches, read, np.flatnonzero(near)))
    return int(touches.row[max(found, key=lambda i: int(moment[i]))])


def _report(facts: Facts, reduce: int, read: int, operand: int) -> Diagnostic:
    program = facts.program
    name = program.buffer_of(int(program.operands.buffer[operand])).name
    root = int(program.peer[reduce])
    message = f"`{name}` is read on {facts.event(read)}, where a reduce to rank {root} has left it"
    message += " undefined"
    labels = (facts.label(read), facts.label(reduce, "only `dst` gets the result here"))
    why = "gloo leaves partial sums in the tensors of all ranks but `dst`"
    hint = "use `all_reduce`, or go on with it on `dst` only, or reduce a copy"
    return Diagnostic(RULE.code, message, labels, (why,), hint)
