"""Collectives whose members disagree.

The i-th call on a group by each member is one collective. A member that does not call (CL211), a
call of another kind (CL212), another root (CL213), another reduce op (CL214), another dtype
(CL215) or other sizes (CL216) make the job hang, abort or, worst, compute garbage silently: gloo
and NCCL compare none of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.sizes import size_faults, unequal_pair
from commlang.diagnostics import Diagnostic
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

CODES = ("CL211", "CL212", "CL213", "CL214", "CL215", "CL216")


@dataclass(frozen=True, slots=True)
class _Aspect:
    """One thing that the members' calls must agree in: a number per site or per row."""

    code: str
    what: str
    why: str


_ASPECTS = (
    _Aspect("CL212", "kind", "the calls pair by number, so wrong ones meet and the job hangs"),
    _Aspect("CL213", "root", "each rank waits for another root, and the job hangs"),
    _Aspect("CL214", "reduce op", "no backend compares it: the result is garbage, silently"),
    _Aspect("CL215", "dtype", "no backend compares it: bytes are reinterpreted, or gloo aborts"),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Per group the first fault in issue order; what follows it is its consequence."""
    calls = facts.collectives
    if len(calls.start) < 2:
        return
    faults = _faults(facts)
    seen: set[int] = set()
    for instance in sorted(faults, key=lambda i: (int(calls.group[i]), int(calls.turn[i]))):
        group = int(calls.group[instance])
        if group not in seen:
            seen.add(group)
            yield faults[instance]()


def _faults(facts: Facts) -> dict[int, _Report]:
    """The worst fault of each faulty instance, as a report to be made if it is shown."""
    calls = facts.collectives
    faults: dict[int, _Report] = {}
    for instance, row in size_faults(facts.program, calls):
        faults[instance] = _Report(facts, instance, None, row)
    leader = calls.row[calls.start[:-1]]
    instance_of = np.repeat(np.arange(len(leader)), np.diff(calls.start))
    for aspect in reversed(_ASPECTS):
        values = _values(facts, aspect)
        wrong = values != values[calls.start[:-1]][instance_of]
        for place in np.flatnonzero(wrong)[::-1].tolist():
            faults[int(instance_of[place])] = _Report(
                facts, int(instance_of[place]), aspect, int(calls.row[place])
            )
    for instance in np.flatnonzero(~calls.whole).tolist():
        report = faults.get(instance)
        if report is None or report.aspect is None or report.aspect.code != "CL212":
            faults[instance] = _Report(facts, instance, None, -1)
    return faults


def _values(facts: Facts, aspect: _Aspect) -> Array:
    """Per call (in the order of `collectives.row`), a number that must agree."""
    program, row = facts.program, facts.collectives.row
    if aspect.what == "root":
        return program.peer[row]
    numbers: dict[str, int] = {}
    table = [
        numbers.setdefault(_aspect_text(facts, site, aspect.what), len(numbers))
        for site in range(len(program.sites))
    ]
    return np.array(table)[program.site[row]]


def _aspect_text(facts: Facts, number: int, what: str) -> str:
    site = facts.program.sites[number]
    if what == "kind":
        return Kind(site.kind).name.lower()
    if what == "reduce op":
        factor = f"({site.op.factor})" if site.op and site.op.factor is not None else ""
        return f"{site.op.op}{factor}" if site.op else "none"
    return str(site.dtype)


@dataclass(frozen=True, slots=True)
class _Report:
    """One faulty instance; `row` is the call that disagrees with the first, -1 for one missing."""

    facts: Facts
    instance: int
    aspect: _Aspect | None
    row: int

    def __call__(self) -> Diagnostic:
        if self.row < 0:
            return self._missing()
        calls = self.facts.collectives
        first = int(calls.row[calls.start[self.instance]])
        if self.aspect is None:
            return self._sizes(first)
        one, two = (self._value(row) for row in (first, self.row))
        ranks = self.facts.event(first), self.facts.event(self.row)
        message = (
            f"collectives disagree in {self.aspect.what}: {one} on {ranks[0]}, {two} on {ranks[1]}"
        )
        labels = (self.facts.label(self.row, two), self.facts.label(first, one))
        hint = "call the collectives of a group in one order on all of its ranks"
        return Diagnostic(
            self.aspect.code,
            message,
            labels,
            (self.aspect.why, self._which()),
            hint if self.aspect.code == "CL212" else None,
        )

    def _value(self, row: int) -> str:
        program = self.facts.program
        assert self.aspect is not None
        if self.aspect.what == "root":
            return f"root {int(program.peer[row])}"
        return _aspect_text(self.facts, int(program.site[row]), self.aspect.what)

    def _which(self) -> str:
        calls = self.facts.collectives
        label = self.facts.program.groups.entries[int(calls.group[self.instance])].label
        return f"call {int(calls.turn[self.instance]) + 1} on group `{label}`"

    def _missing(self) -> Diagnostic:
        program, calls = self.facts.program, self.facts.collectives
        rows = calls.row[calls.start[self.instance] : calls.start[self.instance + 1]]
        members = program.groups.entries[int(calls.group[self.instance])].members
        absent = [m for m in members if m not in set(program.rank[rows].tolist())]
        first = int(rows[0])
        name = program.site_of(first).name
        verb = "makes" if len(absent) == 1 else "make"
        message = (
            f"{name} on {self.facts.event(first)} waits for {ranks_text(absent)}, "
            f"which {'never calls' if len(absent) == 1 else 'never call'} it"
        )
        turn = int(calls.turn[self.instance])
        count = "no call" if not turn else f"{turn} call{'s' if turn > 1 else ''}"
        notes = [self._which(), f"{ranks_text(absent)} {verb} {count} on this group in all"]
        hint = "every rank of the group must make the call; if some stand aside, run it on a group"
        return Diagnostic("CL211", message, (self.facts.label(first),), tuple(notes), hint)

    def _sizes(self, first: int) -> Diagnostic:
        name = self.facts.program.site_of(self.row).name
        other = (
            first
            if first != self.row
            else int(self.facts.collectives.row[self.facts.collectives.start[self.instance] + 1])
        )
        why = "gloo aborts the process or leaves a tail untouched; NCCL hangs or corrupts"
        if self.facts.program.kind[self.row] == Kind.ALL_TO_ALL:
            return self._exchange(name, why)
        sizes = [_size_text(self.facts, row) for row in (other, self.row)]
        message = (
            f"{name}: sizes disagree: {sizes[0]} on {self.facts.event(other)}, "
            f"{sizes[1]} on {self.facts.event(self.row)}"
        )
        labels = (self.facts.label(self.row, sizes[1]), self.facts.label(other, sizes[0]))
        return Diagnostic("CL216", message, labels, (why, self._which()))

    def _exchange(self, name: str, why: str) -> Diagnostic:
        """What one member of an all_to_all sends to another, and what that one expects."""
        calls = self.facts.collectives
        rows = calls.row[calls.start[self.instance] : calls.start[self.instance + 1]]
        pair = unequal_pair(self.facts.program, rows)
        assert pair is not None, "the sizes of this instance disagree"
        receiver, sender, expected, sent = int(rows[pair[0]]), int(rows[pair[1]]), *pair[2:]
        message = (
            f"{name}: {self.facts.event(sender)} sends {elements(sent)} to "
            f"{self.facts.event(receiver)}, which expects {expected}"
        )
        labels = (
            self.facts.label(receiver, _size_text(self.facts, receiver)),
            self.facts.label(sender, _size_text(self.facts, sender)),
        )
        return Diagnostic("CL216", message, labels, (why, self._which()))


def _size_text(facts: Facts, row: int) -> str:
    """The element counts of a call: `1024`, or a list's `[4, 4, 3]`."""
    program = facts.program
    first, count = int(program.first[row]), int(program.count[row])
    lengths = program.operands.length[first : first + count].tolist()
    if program.site_of(row).name == "all_to_all_single" and count > 2:
        half = count // 2
        return f"output splits {_brief(lengths[:half])}, input splits {_brief(lengths[half:])}"
    return _brief(lengths) if count > 2 else elements(max(lengths))


def elements(count: int) -> str:
    """`1 element`, `8 elements`."""
    return f"{count} element{'' if count == 1 else 's'}"


def _brief(lengths: list[int]) -> str:
    shown = ", ".join(map(str, lengths[:8]))
    return f"[{shown}, …]" if len(lengths) > 8 else f"[{shown}]"


def ranks_text(ranks: list[int]) -> str:
    """`rank 3`, `ranks 1 and 2`, or the first few of many."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) <= 6:
        return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks[:4]))}, … ({len(ranks)} in all)"
