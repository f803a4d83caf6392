"""Comparisons that the field could not settle, settled by what went into their sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts.judge import Side, follows, violated
from commlang.contracts.slices import Slice, made_by_run
from commlang.records import record

if TYPE_CHECKING:
    from commlang.contracts.actions import Action
    from commlang.contracts.model import Model, State
    from commlang.contracts.symbolic import Comparison, SymbolicEvaluator
    from commlang.program.columns import Array

_LANES = 16
"""Lanes that are looked at for a witness."""
_SAMPLE = 4
"""Elements of a comparison that are looked at for a witness, on one lane."""
_AT_ONCE = 4096


@record
class Open:
    """A pair of values that was not seen to compare as it should."""

    comparison: Comparison
    entry: int

    @property
    def got(self) -> int:
        return int(self.comparison.got[self.entry])

    @property
    def expected(self) -> int:
        return int(self.comparison.expected[self.entry])


@record
class Settled:
    """Some pairs of values that differ were found to compare as they should all the same."""


@record
class Unknown:
    """Why it cannot be told."""

    reason: str


@record
class Witness:
    """A pair that does not compare as it should for some data, and its terms."""

    where: Open
    lane: int
    slice: Slice
    side: Side


def decide(
    evaluator: SymbolicEvaluator, model: Model, state: State, holds: Array
) -> Settled | Unknown | Witness | None:
    """Look into what is open: settle more, or find a witness; None if nothing is open."""
    return _Looked(evaluator, model, state).decide(holds)


class _Looked:
    def __init__(self, evaluator: SymbolicEvaluator, model: Model, state: State) -> None:
        self.evaluator = evaluator
        self.model = model
        self.state = state
        self.lanes = [_lanes(evaluator, comparison) for comparison in evaluator.open]

    def decide(self, holds: Array) -> Settled | Unknown | Witness | None:
        if not self.evaluator.open:
            return None
        monotone = all(comparison.certain for comparison in self.evaluator.open)
        unknown: Unknown | None = None
        if monotone:
            for lane in np.flatnonzero(~holds)[:_LANES].tolist():
                found = self._witness(lane)
                if isinstance(found, Witness):
                    return found
                unknown = unknown or found
        if unknown is None and self._settle(holds if monotone else np.zeros_like(holds)):
            return Settled()
        return unknown or Unknown("no proof was found, and no data that contradict it")

    def _witness(self, lane: int) -> Witness | Unknown | None:
        """Data for which every open comparison of a lane is false: then the contract is."""
        open_ones = [
            [Open(comparison, int(entry)) for entry in np.flatnonzero(lanes == lane)[:_SAMPLE]]
            for comparison, lanes in zip(self.evaluator.open, self.lanes, strict=True)
        ]
        open_ones = [entries for entries in open_ones if entries]
        if not open_ones:
            return None
        looked, sides = self._terms([entry for entries in open_ones for entry in entries])
        rest = iter(sides)
        groups = [[next(rest) for _ in entries] for entries in open_ones]
        number = violated(looked.terms, groups)
        if number is None:
            return None
        where, side = open_ones[0][number], groups[0][number]
        calls = looked.calls(side.got), looked.calls(side.expected)
        named = {step.action.name for step in self.evaluator.steps}
        unnamed = (calls[0] | calls[1]) - named
        if bool(calls[0]) != bool(calls[1]) and unnamed and not self._made(where):
            name = min(unnamed)
            return Unknown(f"it depends on what `{name}` does")
        return Witness(where, lane, looked, side)

    def _made(self, where: Open) -> bool:
        end = self.model.addresses.end
        return made_by_run(self.state, self.evaluator.steps, where.expected, end)

    def _terms(self, entries: list[Open]) -> tuple[Slice, list[Side]]:
        """The terms of both sides of some pairs, the expected ones cast as they are compared."""
        wanted = [index for entry in entries for index in (entry.got, entry.expected)]
        looked = Slice(self.state, self.model.work, self.evaluator.steps, wanted)
        sides: list[Side] = []
        for entry in entries:
            got, expected = looked.term(entry.got), looked.term(entry.expected)
            cast: Action = entry.comparison.cast
            sides.append(Side(entry.comparison.op, got, looked.prepared(cast, expected)))
        return looked, sides

    def _settle(self, holds: Array) -> bool:
        """Note which open pairs of lanes that do not hold follow from their terms."""
        settled = False
        for comparison, lanes in zip(self.evaluator.open, self.lanes, strict=True):
            relevant = np.flatnonzero(~holds[lanes])
            values = self.evaluator.pair_values(comparison, relevant)
            distinct = list(dict(zip(values, relevant.tolist(), strict=True)).items())
            for start in range(0, len(distinct), _AT_ONCE):
                part = distinct[start : start + _AT_ONCE]
                looked, sides = self._terms([Open(comparison, entry) for _, entry in part])
                for ((got, expected), _), side in zip(part, sides, strict=True):
                    if follows(looked.terms, side):
                        self.evaluator.settled.add(comparison.op, got, expected)
                        settled = True
        return settled


def _lanes(evaluator: SymbolicEvaluator, comparison: Comparison) -> Array:
    """The lane of the contract that each pair of a comparison is of."""
    index = comparison.scope.map_to(evaluator.lanes) if evaluator.lanes else None
    return comparison.lane if index is None else index[comparison.lane]
