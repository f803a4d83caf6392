"""Verdicts on an expanded program; each module holds one rule, its docstring is its manual page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks import collectives, deadlock, handles, messages, ordering, overlap
from commlang.checks.facts import gather_facts

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic
    from commlang.program import Program

RULES = (handles, ordering, overlap, messages, collectives)
"""Rules that look at the program as it is.

The deadlock rule comes after them, and only where everything meets: what waits for an operation
that never comes would show rings that no run gets to.
"""


def check_program(program: Program) -> list[Diagnostic]:
    """Everything that is wrong with a program under rendezvous semantics; empty if it is sound."""
    facts = gather_facts(program)
    found = [diagnostic for rule in RULES for diagnostic in rule.check(facts)]
    astray = (*collectives.CODES, *messages.UNMATCHED)
    if not any(d.code in astray for d in found):
        found += deadlock.check(facts)
    return found
