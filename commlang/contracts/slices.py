"""What led to some cells: the moves that matter, done again on terms."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts import field
from commlang.contracts.actions import (
    INVERTED,
    Act,
    Action,
    cast_key,
    is_whole,
    rounding_key,
)
from commlang.contracts.addresses import TooLarge
from commlang.contracts.terms import Terms, rational
from commlang.operations import ReduceOp
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.contracts.model import State
    from commlang.contracts.symbolic import Step
    from commlang.contracts.work import Work
    from commlang.program.columns import Array

MAX_MOVES = 400_000
_OVERWRITES = frozenset((Act.COPY, Act.REDUCE, Act.FILL, Act.FORGET, Act.CALL, Act.MAKE))
_WITHOUT_SOURCE = frozenset((Act.SCALE, Act.FILL, Act.INVERT, Act.FORGET, Act.CALL))


@record
class _Moves:
    """Some moves of one action, as lists."""

    action: Action
    source: list[int]
    target: list[int]
    extra: list[int]
    row: list[int]


class Slice:
    """The terms of some cells, and which event wrote each of them last (-1: none)."""

    def __init__(
        self, state: State, work: Work, steps: Sequence[Step], wanted: Sequence[int]
    ) -> None:
        self.state = state
        self.work = work
        self.terms = Terms()
        self.value: dict[int, int] = {}
        self.writer: dict[int, int] = {}
        for moves in reversed(_needed(state, steps, wanted)):
            self._run(moves)

    def term(self, index: int) -> int:
        """The term of an index of the values."""
        if index in self.value:
            return self.value[index]
        within = index % self.state.count
        cells = len(self.state.cells)
        if within < cells:
            return self.terms.make("entry", within)
        call = within - cells
        return self.terms.make("call", self.work.names[call], int(self.work.seed[call]), ())

    def calls(self, term: int) -> set[str]:
        """The names of the functions that a term is made with."""
        nodes = (self.terms.nodes[part] for part in self.terms.below(term))
        return {str(node[1]) for node in nodes if node[0] == "call"}

    def _run(self, moves: _Moves) -> None:
        if moves.action.act in (Act.REDUCE, Act.READ):
            self._gather(moves)
        else:
            for source, target, extra in zip(moves.source, moves.target, moves.extra, strict=True):
                self.value[target] = self._one(moves.action, source, target, extra, moves.row)
        self.writer.update(zip(moves.target, moves.row, strict=False))

    def _one(self, action: Action, source: int, target: int, extra: int, rows: list[int]) -> int:
        terms = self.terms
        match action.act:
            case Act.COPY:
                return self.prepared(action, self.term(source))
            case Act.ACCUMULATE:
                assert action.op is not None
                parts = [self.term(target), self.prepared(action, self.term(source))]
                return terms.combine(action.op, parts)
            case Act.SCALE:
                if action.factor is not None:
                    return self._scaled(action, self.term(target), action.factor)
                return terms.scale(self.term(target), extra)
            case Act.FILL:
                return terms.number(extra)
            case Act.CALL:
                return terms.make("call", action.name, extra, ())
            case Act.INVERT:
                return self._inverted(action, self.term(target))
            case Act.MAKE:
                return terms.make("made", self.term(source), extra)
            case _:
                return terms.make("unknown", extra, target)

    def _gather(self, moves: _Moves) -> None:
        parts: dict[int, list[tuple[int, int]]] = {}
        for source, target, extra in zip(moves.source, moves.target, moves.extra, strict=True):
            parts.setdefault(target, []).append((extra, self.term(source)))
        for target, found in parts.items():
            if moves.action.act is Act.READ:
                _, name, seed, before = self.terms.nodes[self.term(target)]
                everything = tuple(sorted((*before, *found)))
                self.value[target] = self.terms.make("call", name, seed, everything)
                continue
            assert moves.action.op is not None
            ready = [self.prepared(moves.action, term) for _, term in found]
            total = self.terms.combine(moves.action.op, ready)
            self.value[target] = self._finished(moves.action, total)

    def prepared(self, action: Action, term: int) -> int:
        """A source as it enters: cast, and multiplied for premul_sum."""
        key = cast_key(action.source, action.target)
        term = self.terms.make("apply", key, term) if key else term
        return term if action.factor is None else self._scaled(action, term, action.factor)

    def _scaled(self, action: Action, term: int, factor: Fraction) -> int:
        key = rounding_key(factor, action.target)
        if key:
            return self.terms.make("apply", key, term)
        return self.terms.scale(term, field.number(factor))

    def _finished(self, action: Action, term: int) -> int:
        if action.op is not ReduceOp.AVG or action.count == 1:
            return term
        parts, constant = self.terms.linear(term)
        shares = [rational(f) / action.count for f in (*parts.values(), constant)]
        if is_whole(action.target) and any(share.denominator > 1 for share in shares):
            return self.terms.make("average", action.count, term)
        return self.terms.scale(term, field.number(Fraction(1, action.count)))

    def _inverted(self, action: Action, term: int) -> int:
        value = self.terms.constant(term)
        if value and not is_whole(action.target):
            return self.terms.number(pow(value, -1, field.PRIME))
        return self.terms.make("apply", INVERTED, term)


def _needed(state: State, steps: Sequence[Step], wanted: Sequence[int]) -> list[_Moves]:
    """The moves that matter for some cells, from the last to the first."""
    needed = np.zeros(2 * state.count, dtype=np.bool_)
    needed[list(wanted)] = True
    found: list[_Moves] = []
    size = 0

    def look(action: Action, source: Array, target: Array, extra: Array, row: Array) -> int:
        chosen = np.flatnonzero(needed[target])
        if not len(chosen):
            return 0
        if action.act in _OVERWRITES:
            needed[target[chosen]] = False
        if action.act not in _WITHOUT_SOURCE:
            needed[source[chosen]] = True
        columns = (source[chosen], target[chosen], extra[chosen], row[chosen])
        found.append(_Moves(action, *(column.tolist() for column in columns)))
        return len(chosen)

    for entry in reversed(steps):
        nobody = np.full(len(entry.target), -1)
        size += look(entry.action, entry.source, entry.target, entry.extra, nobody)
    moves = state.moves
    for i in range(len(moves.code) - 1, -1, -1):
        low, high = moves.bounds[i], moves.bounds[i + 1]
        columns = (moves.source, moves.target, moves.extra, moves.row)
        parts: list[Array] = [column[low:high] for column in columns]
        size += look(moves.actions[int(moves.code[i])], *parts)
        if size > MAX_MOVES:
            raise TooLarge("too much leads to its elements to write it down")
    return found


def made_by_run(state: State, steps: Sequence[Step], index: int, end: int) -> bool:
    """Whether a value of a contract depends on what some parameter holds at the end."""
    needed = {index}
    for entry in reversed(steps):
        chosen = np.flatnonzero(np.isin(entry.target, list(needed)))
        if len(chosen):
            needed.update(entry.source[chosen].tolist())
    cuts = state.cells.cuts
    return any(i < len(cuts) and cuts[i] < end for i in needed)
