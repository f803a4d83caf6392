"""Collectives whose members disagree: what the rules on them share.

The i-th call on a group by each member is one collective. A member that does not call (CL211), a
call of another kind (CL212), another root (CL213), another reduce op (CL214), another dtype
(CL215) or other sizes (CL216) make the job hang, abort or, worst, compute garbage silently: gloo
and NCCL compare none of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commlang.checks.sizes import elements, size_faults
from commlang.diagnostics import Diagnostic
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

MISSING, KIND, SIZE = "CL211", "CL212", "CL216"

_ASPECTS = ((KIND, "kind"), ("CL213", "root"), ("CL214", "reduce op"), ("CL215", "dtype"))
"""What the calls of the members must agree in, the worst first."""


class Fault(NamedTuple):
    """The worst fault of one collective; `row` is a call that shows it, -1 where one is missing."""

    code: str
    instance: int
    row: int


def first_faults(facts: Facts) -> list[Fault]:
    """Per group the first fault in issue order; what follows it is its consequence."""
    calls = facts.collectives
    if len(calls.start) < 2:
        return []
    faults = _faults(facts)
    first: dict[int, Fault] = {}
    for instance in sorted(faults, key=lambda i: (int(calls.group[i]), int(calls.turn[i]))):
        first.setdefault(int(calls.group[instance]), faults[instance])
    return list(first.values())


def faults_of(facts: Facts, code: str) -> Iterator[Fault]:
    """Those of the program's faults that one rule tells."""
    return (fault for fault in facts.collective_faults if fault.code == code)


def _faults(facts: Facts) -> dict[int, Fault]:
    """The worst fault of each faulty instance."""
    calls = facts.collectives
    faults = {i: Fault(SIZE, i, row) for i, row in size_faults(facts.program, calls)}
    start = calls.start[:-1]
    instance_of = np.repeat(np.arange(len(start)), np.diff(calls.start))
    for code, what in reversed(_ASPECTS):
        values = _values(facts, what)
        wrong = values != values[start][instance_of]
        for place in np.flatnonzero(wrong)[::-1].tolist():
            instance = int(instance_of[place])
            faults[instance] = Fault(code, instance, int(calls.row[place]))
    for instance in np.flatnonzero(~calls.whole).tolist():
        if instance not in faults or faults[instance].code != KIND:
            faults[instance] = Fault(MISSING, instance, -1)
    return faults


def _values(facts: Facts, what: str) -> Array:
    """Per call (in the order of `collectives.row`), a number that must agree."""
    program, row = facts.program, facts.collectives.row
    if what == "root":
        return program.peer[row]
    numbers: dict[str, int] = {}
    table = [
        numbers.setdefault(_site_text(facts, site, what), len(numbers))
        for site in range(len(program.sites))
    ]
    return np.array(table)[program.site[row]]


def _site_text(facts: Facts, number: int, what: str) -> str:
    site = facts.program.sites[number]
    if what == "kind":
        return Kind(site.kind).name.lower()
    if what == "reduce op":
        factor = f"({site.op.factor})" if site.op and site.op.factor is not None else ""
        return f"{site.op.op}{factor}" if site.op else "none"
    return str(site.dtype)


def disagreements(
    facts: Facts, code: str, what: str, why: str, hint: str | None = None
) -> Iterator[Diagnostic]:
    """The faults of a code as findings: what two of the calls have, and where they stand."""
    program, calls = facts.program, facts.collectives
    for fault in faults_of(facts, code):
        rows = int(calls.row[calls.start[fault.instance]]), fault.row
        if what == "root":
            one, two = (f"root {int(program.peer[row])}" for row in rows)
        else:
            one, two = (_site_text(facts, int(program.site[row]), what) for row in rows)
        message = (
            f"collectives disagree in {what}: {one} on {facts.event(rows[0])}, "
            f"{two} on {facts.event(rows[1])}"
        )
        labels = (facts.label(rows[1], two), facts.label(rows[0], one))
        yield Diagnostic(code, message, labels, (why, which(facts, fault.instance)), hint)


def which(facts: Facts, instance: int) -> str:
    """`call 2 on group `world``: which collective of the group it is."""
    calls = facts.collectives
    label = facts.program.groups.entries[int(calls.group[instance])].label
    return f"call {int(calls.turn[instance]) + 1} on group `{label}`"


def size_text(facts: Facts, row: int) -> str:
    """The element counts of a call: `1024 elements`, or a list's `[4, 4, 3]`."""
    program = facts.program
    first, count = int(program.first[row]), int(program.count[row])
    lengths = program.operands.length[first : first + count].tolist()
    if program.site_of(row).name == "all_to_all_single" and count > 2:
        half = count // 2
        return f"output splits {_brief(lengths[:half])}, input splits {_brief(lengths[half:])}"
    return _brief(lengths) if count > 2 else elements(max(lengths))


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
