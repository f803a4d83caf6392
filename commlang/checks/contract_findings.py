"""What is to be said of a program's contracts, found once for the rules that tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts import prove

if TYPE_CHECKING:
    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic


def contract_findings(facts: Facts) -> list[Diagnostic]:
    """The findings on the contracts of a program that ends; what hangs has no results."""
    if not facts.everything_meets or facts.collective_faults or facts.deadlock:
        return []
    program, messages = facts.program, facts.tagged
    length = program.operands.length
    sent, taken = (length[program.first[end]] for end in (messages.send, messages.recv))
    if len(messages.lone) or not np.array_equal(sent, taken):
        return []
    return prove(program, messages, facts.collectives)
