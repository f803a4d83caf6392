"""The advice on a ring of waits as an edit, where it is to put two neighbours in a `parallel:`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.checks.edits import names_in, wrap_statements
from commlang.checks.ring_advice import adjacent, shared
from commlang.diagnostics import Edit
from commlang.operations import Kind
from commlang.program.context import loop_variables
from commlang.source import Span

if TYPE_CHECKING:
    from commlang.checks.facts import Facts
    from commlang.checks.ring import Wait
    from commlang.diagnostics import Fix

_INBOX = "inbox"


def exchange_fix(facts: Facts, ring: list[Wait]) -> Fix | None:
    """Put the two ends of the first rank of a ring in one block, if they are neighbours."""
    program = facts.program
    row = ring[0].waiting
    rank = int(program.rank[row])
    behind = next((w.awaited for w in ring if int(program.rank[w.awaited]) == rank), None)
    if behind is None or program.site[behind] == program.site[row] or program.wait[row] >= 0:
        return None
    if not all(program.kind[end] <= Kind.RECV for end in (row, behind)):
        return None
    variables = loop_variables(program, [row, behind])
    if variables[row] != variables[behind] or not adjacent(program, row, behind):
        return None
    first, last = sorted((program.site_of(row), program.site_of(behind)), key=lambda s: s.span)
    target = shared(program, row, behind)
    if not target:
        return wrap_statements(facts, first, last, "parallel:")
    if _INBOX in names_in(facts, first.source):
        return None
    above, below = f"temp {_INBOX}: like {target}\nparallel:", f"{_INBOX} -> {target}"
    wrapped = wrap_statements(facts, first, last, above, below)
    recv = first if first.kind is Kind.RECV else last
    at = recv.span.start + len("recv(")
    if wrapped is None or recv.source.text[at : at + len(target)] != target:
        return None
    inbox = Edit(Span(at, at + len(target)), _INBOX)
    return replace(wrapped, edits=(*wrapped.edits, inbox))
