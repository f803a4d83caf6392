"""A contract that was not seen to hold: what to say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.contracts.decide import Settled, Unknown, decide
from commlang.contracts.report import Report, undecided

if TYPE_CHECKING:
    from commlang.contracts.model import Model, State
    from commlang.contracts.symbolic import SymbolicEvaluator
    from commlang.diagnostics import Diagnostic
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.syntax import ast


def explain(
    program: Program,
    model: Model,
    state: State,
    evaluator: SymbolicEvaluator,
    contract: ast.Ensure,
    holds: Array,
) -> Diagnostic | None:
    """The finding, or None if values turned out to be equal that were not known to be.

    `holds` tells by lane where the contract was seen to hold.
    """
    found = decide(evaluator, model, state, holds)
    match found:
        case Settled():
            return None
        case Unknown(reason):
            return undecided(program, contract, reason)
        case _:
            return Report(program, model, state, evaluator, contract, holds).failed(found)
