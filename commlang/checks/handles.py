"""Handles of asynchronous operations (CL206, CL207, CL208, CL209).

Every handle is waited for exactly once. gloo cancels a send whose handle is dropped before the
recv is posted, and no backend promises anything about data that an operation still owns. A handle
bound again before its wait is lost (CL207); `wait(work[i])` needs an operation to join (CL208);
a temp that ends while an operation still owns it would be reused under it (CL209).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.diagnostics import Diagnostic
from commlang.program.handles import NEVER, rebinding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

CODES = ("CL206", "CL207", "CL208", "CL209")


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement and kind of fault."""
    handles, program = facts.program.handles, facts.program
    if not len(handles.row):
        return
    binds = ~handles.is_wait
    rows, wait = handles.row[binds], program.wait[handles.row[binds]]
    again = rebinding(handles, len(program))
    rebound = (again != NEVER) & ((wait < 0) | (again < wait))
    for row in _first_per_site(facts, rows[rebound]):
        name = program.site_of(row).handle
        later = int(again[np.flatnonzero(rows == row)[0]])
        labels = (facts.label(later), facts.label(row, "still outstanding"))
        message = f"handle `{name}` is bound again on {facts.event(later)} before its wait"
        variable = facts.innermost(later) or "i"
        hint = f"index it by the loop variable: `{name}[{variable}] = async …`"
        yield Diagnostic("CL207", message, labels, (), hint)
    for row in _first_per_site(facts, rows[(wait < 0) & ~rebound]):
        name = program.site_of(row).handle
        message = f"handle `{name}` is never waited for on {facts.event(row)}"
        why = "its data may still be moving, and gloo drops a send whose handle is dropped"
        yield Diagnostic("CL206", message, (facts.label(row),), (why,), f"add `wait({name})`")
    exact = handles.row[handles.is_wait & ~handles.wildcard]
    for row in _first_per_site(facts, np.setdiff1d(exact, wait)):
        name = program.site_of(row).handle
        message = f"nothing is outstanding at `{program.text(row)}` on {facts.event(row)}"
        hint = f"`wait({name})` joins whatever is outstanding, possibly nothing"
        yield Diagnostic("CL208", message, (facts.label(row),), (), hint)
    yield from _outlives(facts, rows, wait, handles.deadline[binds])


def _outlives(facts: Facts, rows: Array, wait: Array, deadline: Array) -> Iterator[Diagnostic]:
    program = facts.program
    joined = wait >= 0
    late = joined & (program.key[np.maximum(wait, 0)] >= deadline)
    for row in _first_per_site(facts, rows[late]):
        message = f"a temp ends while the operation on {facts.event(row)} still owns it"
        labels = (facts.label(row), facts.label(int(program.wait[row]), "joined only here"))
        hint = "declare the temp outside the block, with an index per iteration"
        yield Diagnostic("CL209", message, labels, (), hint)


def _first_per_site(facts: Facts, rows: Array) -> list[int]:
    _, first = np.unique(facts.program.site[rows], return_index=True)
    return sorted(rows[first].tolist())
