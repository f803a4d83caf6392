"""Every `ensure` of a pattern decided: it holds, it does not, or it cannot be told."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts.addresses import TooLarge
from commlang.contracts.model import model_of, run_model
from commlang.contracts.symbolic import Settled, SymbolicEvaluator
from commlang.errors import PatternError
from commlang.expand.groups import GroupTable
from commlang.expand.record import Recording
from commlang.expand.recursion import deep_recursion
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.contracts.model import Model, State
    from commlang.contracts.regions import Pairs
    from commlang.diagnostics import Diagnostic
    from commlang.program import Program
    from commlang.program.matching import Collectives, Messages

_ATTEMPTS = 4
"""How often regions are cut anew because a contract looked where it had not looked before."""


def prove(program: Program, messages: Messages, collectives: Collectives) -> list[Diagnostic]:
    """What is to be said of a pattern's contracts: nothing if all of them hold.

    The program must be of the whole world; everything in it must meet, and nothing hang. CL240
    is a contract that does not hold, CL241 one that cannot be decided (a warning), CL242 one that
    has no meaning for these shapes.
    """
    contracts = [s for s in program.definition.node.body if isinstance(s, ast.Ensure)]
    if not contracts:
        return []
    with deep_recursion():
        try:
            return _Proof(program, messages, collectives, contracts).findings()
        except TooLarge as reason:
            return [_undecided(program, contract, reason) for contract in contracts]


@dataclass(slots=True)
class _Planned:
    """A contract, and the first address that its results take."""

    contract: ast.Ensure
    shelf: int
    links: list[Pairs]


class _Proof:
    def __init__(
        self,
        program: Program,
        messages: Messages,
        collectives: Collectives,
        contracts: list[ast.Ensure],
    ) -> None:
        self.program = program
        self.model: Model = model_of(program, messages, collectives)
        self.recording = Recording(
            program.world,
            program.ranks,
            GroupTable(program.world, program.groups.entries[1:]),
            program.definition,
            parameters=program.parameters,
            tensors=program.tensors,
        )
        self.planned = self._plan(contracts)

    def _plan(self, contracts: list[ast.Ensure]) -> list[_Planned]:
        """Look at what contracts compare, to cut it alike."""
        evaluator = SymbolicEvaluator(
            self.recording, self.model.addresses, samples=self.model.work.samples
        )
        shelf = self.model.shelf
        planned: list[_Planned] = []
        for contract in contracts:
            evaluator.begin(shelf)
            with suppress(PatternError):  # told where comparisons are real
                evaluate(evaluator, contract)
            planned.append(_Planned(contract, shelf, evaluator.links))
            shelf = evaluator.shelf.end
        return planned

    def findings(self) -> list[Diagnostic]:
        for _ in range(_ATTEMPTS):
            links = [pairs for planned in self.planned for pairs in planned.links]
            state = run_model(self.model, links)
            found = self._decide(state)
            if found is not None:
                return found
        raise TooLarge("its parts cut the tensors into ever smaller regions")

    def _decide(self, state: State) -> list[Diagnostic] | None:
        """The findings, or None if some regions have to be cut further."""
        evaluator = SymbolicEvaluator(
            self.recording,
            self.model.addresses,
            state.cells,
            state.values,
            samples=self.model.work.samples,
        )
        found: list[Diagnostic] = []
        astray = False
        for planned in self.planned:
            diagnostic = self._one(evaluator, planned, state)
            if evaluator.astray:
                planned.links += evaluator.links
                astray = True
            elif diagnostic is not None:
                found.append(diagnostic)
        return None if astray else found

    def _one(
        self, evaluator: SymbolicEvaluator, planned: _Planned, state: State
    ) -> Diagnostic | None:
        contract = planned.contract
        evaluator.settled = Settled()
        try:
            while True:
                evaluator.begin(planned.shelf)
                holds = evaluate(evaluator, contract)
                doubt = any(not comparison.certain for comparison in evaluator.open)
                if evaluator.astray or (holds.all() and not doubt):
                    return None
                from commlang.contracts.explain import explain  # not where all is well

                found = explain(self.program, self.model, state, evaluator, contract, holds)
                if found is not None:  # else more is known now of what is equal
                    return found
        except PatternError as error:
            from commlang.contracts.report import meaningless

            return meaningless(error.diagnostics[0])
        except TooLarge as reason:
            return _undecided(self.program, contract, reason)


def evaluate(evaluator: SymbolicEvaluator, contract: ast.Ensure) -> np.ndarray:
    """On which of its lanes (ranks, and values of its `for`) a contract is seen to hold."""
    scope = evaluator.iterate(contract.clauses, evaluator.root(old=False))
    if not scope.lanes:
        return np.ones(0, dtype=np.bool_)
    evaluator.lanes = scope
    holds = evaluator.boolean(contract.condition, scope, "an `ensure`")
    return np.broadcast_to(np.asarray(holds), scope.lanes)


def _undecided(program: Program, contract: ast.Ensure, reason: TooLarge) -> Diagnostic:
    from commlang.contracts.report import undecided

    return undecided(program, contract, str(reason))
