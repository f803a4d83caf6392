"""Contracts: the language of `ensure`, and its proof before the run.

`docs/contracts.md` says how a proof works and what it is worth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic
    from commlang.program import Program
    from commlang.program.matching import Collectives, Messages

__all__ = ["prove"]


def prove(program: Program, messages: Messages, collectives: Collectives) -> list[Diagnostic]:
    """What is to be said of a pattern's contracts; see `commlang.contracts.proof.prove`."""
    from commlang.contracts.proof import prove as decide

    return decide(program, messages, collectives)
