"""Data that are touched while an async operation owns them (CL231).

From `work = async …` to its `wait` the operation may move its data at any moment, or not yet.
Until then what it reads must not be written, and what it writes must be neither read nor written:
not by local work, not by other communication, and not by another async operation. Several
collectives on one tensor that are under way together race, too, although they are issued in one
order.

Put the wait above the line that touches the data, or let the two work on different buffers: for
example receive into one half of a `temp` while the other half is used.

- [torch.distributed, asynchronous operations](https://docs.pytorch.org/docs/2.13/distributed.html):
  "modifying the tensor before the request completes causes undefined behavior"
- [OpenNMT-py issue 2295](https://github.com/OpenNMT/OpenNMT-py/issues/2295): gradients that are
  divided before the wait
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.branches import apart, conflicts, meeting
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.program.atoms import Atoms, Latest
from commlang.program.sorting import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.regions import Touches

RULE = Rule(
    "CL231",
    "data-race",
    Severity.ERROR,
    invalid=(
        """\
pattern main(grad: float32[n], n = 8):
    work = async all_reduce(grad)
    scale(grad, 1 / world)  # CL231
    wait(work)
""",
        """\
pattern main(x: float32[n], n = 8):
    work = async all_reduce(x)
    other = async broadcast(x[: n // 2], src=0)  # CL231
    wait(work)
    wait(other)
""",
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    work = async all_reduce(x)
    parallel:
        wait(work)
        x -> y  # CL231
""",
    ),
    valid=(
        """\
pattern main(grad: float32[n], n = 8):
    work = async all_reduce(grad)
    wait(work)
    scale(grad, 1 / world)
""",
        """\
pattern main(grad: float32[4, n], n = 8):
    for b in range(4):
        compute(1ms, "backward", writes=grad[b])
        work[b] = async all_reduce(grad[b])
    wait(work)
""",
        """\
pattern main(x: float32[n], y: float32[n], z: float32[world, n], n = 8):
    work = async all_gather_into_tensor(z, x)
    x -> y
    wait(work)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements."""
    program = facts.program
    if not program.site_async.any():
        return
    owner = _owners(facts)
    seen: set[tuple[int, int]] = set()
    for race in _races(facts, owner):
        pair = int(program.site[race[0]]), int(program.site[race[1]])
        if pair not in seen:
            seen.add(pair)
            yield _report(facts, race)


def _owners(facts: Facts) -> Array:
    """The async rows whose interval is known: those that are waited for, by their own wait."""
    uses = facts.handle_uses
    return np.sort(uses.row[(uses.wait >= 0) & ~uses.rebound])


_Race = tuple[int, int, int, int]
"""The async row, the row that races with it, and the operands of both."""


def _races(facts: Facts, owner: Array) -> Iterator[_Race]:
    program = facts.program
    nested = owner[program.nest[program.wait[owner]] >= 0]
    for part in facts.regions.portions():
        yield from _before_the_wait(facts, part, _within(owner, part))
        if len(nested):
            yield from _beside_the_wait(facts, part, _within(nested, part))


def _within(rows: Array, part: slice) -> Array:
    start, stop = np.searchsorted(rows, [part.start, part.stop])
    return rows[start:stop]


def _before_the_wait(facts: Facts, part: slice, owner: Array) -> Iterator[_Race]:
    """Rows between an async row and its wait, in program order."""
    if not len(owner):
        return
    program, regions = facts.program, facts.regions
    begun = np.zeros(part.stop - part.start + 1, dtype=np.int32)
    np.add.at(begun, owner - part.start + 1, 1)
    np.add.at(begun, program.wait[owner] - part.start, -1)
    owned = np.cumsum(begun[:-1]) > 0
    owned[owner - part.start] = True
    owned &= program.count[part] > 0
    touches, place = regions.by_buffer(regions.touches(np.flatnonzero(owned) + part.start))
    until = np.full(part.stop - part.start, -1, dtype=np.int64)
    until[owner - part.start] = program.wait[owner]
    until = until[touches.row - part.start]
    kept = _contended(touches, place, until)
    touches, place, until = touches.pick(kept), place[kept], until[kept]
    for item in _touching(facts, touches, place, until):
        row = touches.row
        near = (place == place[item]) & (row < row[item]) & (until > row[item])
        near &= touches.writes | touches.writes[item]
        sites: set[int] = set()
        for other in meeting(regions, touches, item, np.flatnonzero(near)):
            site = int(program.site[row[other]])
            if site not in sites:
                sites.add(site)
                operands = int(touches.operand[other]), int(touches.operand[item])
                yield int(row[other]), int(row[item]), *operands


def _contended(touches: Touches, place: Array, until: Array) -> Array:
    """The touches of buffers that something touches while an earlier row owns another part."""
    if not len(place):
        return place
    count = int(place[-1]) + 1
    written = np.zeros(count, dtype=np.bool_)
    written[place[touches.writes]] = True
    least = int(touches.row.min())
    span = int(max(until.max(), touches.row.max())) - least + 2
    shifted = np.maximum(until - least, -1) + place * span
    upto = np.maximum.accumulate(shifted)
    busy = np.zeros(count, dtype=np.bool_)
    same = place[1:] == place[:-1]
    busy[place[1:][same & (upto[:-1] - place[1:] * span > touches.row[1:] - least)]] = True
    return np.flatnonzero((written & busy)[place])


def _touching(facts: Facts, touches: Touches, place: Array, until: Array) -> Iterator[int]:
    """For each statement, the first touch of elements that an earlier row owns at the time."""
    runs = facts.regions.runs(touches)
    exact = ~runs.rough
    item = runs.item[exact]
    atoms = Atoms.of(place[item], runs.low[exact], runs.high[exact])
    any_owner, writing_owner = Latest(atoms), Latest(atoms)
    hits: list[Array] = []
    for piece, atom in atoms.pieces():
        each = item[piece]
        row, writes, end = touches.row[each].astype(np.int64), touches.writes[each], until[each]
        owned = any_owner.before(atom, row, end)
        written = writing_owner.before(atom, row, np.where(writes, end, -1))
        hits.append(each[np.where(writes, owned, written) > row])
    hit = distinct(np.concatenate([np.zeros(0, dtype=np.int64), *hits]))
    site = facts.program.site[touches.row[hit]]
    for each in distinct(site).tolist():
        here = hit[site == each]
        yield int(here[np.argmin(touches.row[here])])


def _beside_the_wait(facts: Facts, part: slice, owner: Array) -> Iterator[_Race]:
    """Rows in other branches of a `parallel:` in which a wait is one branch.

    The wait stands for the data of the operation that it joins.
    """
    program, regions = facts.program, facts.regions
    rows = np.flatnonzero((program.nest[part] >= 0) & (program.count[part] > 0)) + part.start
    owned = regions.touches(owner)
    if not len(rows) or not len(owned):
        return
    wait = program.wait[owned.row]
    touches = regions.touches(rows).joined(owned.of(wait))
    async_of = dict(zip(owned.operand.tolist(), owned.row.tolist(), strict=True))
    for found in conflicts(facts, touches):
        ends = [(found.first, found.one), (found.second, found.other)]
        waits = [program.count[row] == 0 for row, _ in ends]
        if waits.count(True) != 1:
            continue
        (_, operand), (row, other) = ends if waits[0] else ends[::-1]
        start = async_of[operand]
        if not apart(facts, np.array([start]), np.array([row]))[0]:
            yield start, row, operand, other


def _report(facts: Facts, race: _Race) -> Diagnostic:
    program = facts.program
    first, second, owned, operand = race
    name = program.buffer_of(int(program.operands.buffer[operand])).name
    handle, what = program.site_of(first).handle, program.site_of(first).name
    if program.site_of(second).asynchronous:
        message = f"two async operations on `{name}` are under way at once on {facts.event(second)}"
    else:
        verb = "written" if _writes(program, operand) else "read"
        message = f"`{name}` is {verb} on {facts.event(second)} while an async {what} owns it"
    labels = (
        facts.label(second),
        facts.label(first, "started here"),
        facts.label(int(program.wait[first]), "waited for only here"),
    )
    verb = "writes" if _writes(program, owned) else "reads"
    why = f"the {what} {verb} it at any moment before its wait: the outcome is left to chance"
    hint = f"put `wait({handle})` above this line, or use another buffer"
    return Diagnostic(RULE.code, message, labels, (why,), hint)


def _writes(program: Program, operand: int) -> bool:
    return bool(program.operands.access[operand] > 0)
