"""Findings on contracts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts.tell import Teller, region
from commlang.diagnostics import Diagnostic, Label, Severity
from commlang.program.context import loop_variables
from commlang.records import record

if TYPE_CHECKING:
    from commlang.contracts.decide import Open, Witness
    from commlang.contracts.model import Model, State
    from commlang.contracts.slices import Slice
    from commlang.contracts.symbolic import SymbolicEvaluator
    from commlang.expand.scope import Scope
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.syntax import ast

FAILS, UNDECIDED, MEANINGLESS = "CL240", "CL241", "CL242"


def undecided(program: Program, contract: ast.Ensure, reason: str) -> Diagnostic:
    """CL241."""
    label = Label(program.definition.module.source, contract.span)
    message = "it cannot be told before the run whether this contract holds"
    hint = "`commlang run` checks it on real data"
    return Diagnostic(UNDECIDED, message, (label,), (reason,), hint, severity=Severity.WARNING)


def meaningless(found: Diagnostic) -> Diagnostic:
    """CL242, of what evaluating a contract came upon."""
    note = "a contract is evaluated on every rank, with the shapes that its tensors have there"
    return replace(found, code=MEANINGLESS, notes=(*found.notes, note))


@record
class Report:
    """What is known of a contract that does not hold; `holds` is by lane."""

    program: Program
    model: Model
    state: State
    evaluator: SymbolicEvaluator
    contract: ast.Ensure
    holds: Array

    def failed(self, witness: Witness | None) -> Diagnostic:
        """CL240."""
        label = Label(self.program.definition.module.source, self.contract.span)
        scope = self.evaluator.lanes
        assert scope is not None
        if witness is None:
            lane = int(np.flatnonzero(~self.holds)[0])
            text = f"rank {int(scope.ranks[lane])}: the condition is false{_aside(scope, lane)}"
            return Diagnostic(FAILS, text, (label,))
        where, looked = witness.where, witness.slice
        teller = Teller(self.model.addresses, self.state.cells, looked.terms)
        lane = int(where.comparison.lane[where.entry])
        aside = _aside(where.comparison.scope, lane)
        notes = teller.differences(witness.side.got, witness.side.expected)
        if not notes:
            have, want = (teller.describe(t) for t in (witness.side.got, witness.side.expected))
            op = "" if witness.side.op == "==" else f"{witness.side.op} "
            notes = [f"it is {have}, expected {op}{want}"]
        labels, message = (label,), f"{self._subject(where, teller, lane)}{aside}"
        if where.got < self.state.count:
            written = self._writer(looked, where, teller)
            labels = (label, written) if isinstance(written, Label) else labels
            notes += [written] if isinstance(written, str) else []
        place, own = self._place(where, teller), int(where.comparison.scope.ranks[lane])
        if place is None or place[0].rank == own:  # else it is said of that rank alone
            notes += self._extent()
        return Diagnostic(FAILS, message, labels, tuple(notes))

    def _subject(self, where: Open, teller: Teller, lane: int) -> str:
        rank = int(where.comparison.scope.ranks[lane])
        place = self._place(where, teller)
        if place is None:
            return f"rank {rank}: what is compared does not agree"
        return f"rank {place[0].rank}: {region(*place)} is not what the contract says"

    def _place(self, where: Open, teller: Teller):
        within = where.got % self.state.count
        return teller.place(within) if within < len(self.state.cells) else None

    def _writer(self, looked: Slice, where: Open, teller: Teller) -> Label | str | None:
        place = self._place(where, teller)
        if place is None:
            return None
        row = looked.writer.get(where.got, -1)
        if row < 0:
            return f"rank {place[0].rank} never writes it: it is as it was at entry"
        site = self.program.site_of(row)
        variables = loop_variables(self.program, [row])[row]
        aside = f" ({variables})" if variables else ""
        text = f"rank {int(self.program.rank[row])} wrote it last here{aside}"
        return Label(site.source, site.span, text)

    def _extent(self) -> list[str]:
        """How much else is wrong."""
        scope = self.evaluator.lanes
        assert scope is not None
        ranks = len(set(scope.ranks[~self.holds].tolist()))
        if ranks < 2:
            return []
        return [f"it does not hold on {ranks:,} of {self.program.world:,} ranks"]


def _aside(scope: Scope, lane: int) -> str:
    variables = scope.context(lane)
    listed = ", ".join(f"{name} = {value}" for name, value in variables)
    return f" ({listed})" if listed else ""
