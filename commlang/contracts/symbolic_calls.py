"""Externs that contracts call, on symbols: the same moves as those of the pattern's own calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts import functions
from commlang.contracts.actions import Act, Action
from commlang.contracts.views import Run, is_single, joint
from commlang.expand import arrays

if TYPE_CHECKING:
    from commlang.contracts.computed import Called, Made
    from commlang.contracts.symbolic import SymbolicEvaluator
    from commlang.expand.arrays import Int
    from commlang.expand.scope import Scope
    from commlang.expand.values import View
    from commlang.program.columns import Array


def call_on_symbols(ev: SymbolicEvaluator, call: Called, scope: Scope) -> list[View]:
    """What a call writes, on each lane.

    A call has an element of its own, which gathers what is read; what is written comes of it.
    """
    return _Call(ev, call, scope).results()


class _Call:
    def __init__(self, ev: SymbolicEvaluator, call: Called, scope: Scope) -> None:
        self.ev = ev
        self.call = call
        self.function = functions.number_of(call.extern)
        views = [view for _, view in call.read]
        others = (*call.numbers.values(), *(dim for made in call.made for dim in made.shape))
        alike = is_single(*views) and not any(map(arrays.is_array, others))
        self.lanes = min(1, scope.lanes) if alike else scope.lanes
        self.element = ev.shelf.take(np.ones(self.lanes, dtype=np.int64))

    def results(self) -> list[View]:
        self._begin()
        for operand, view in self.call.read:
            self._read(operand, view)
        return [self._made(made) for made in self.call.made]

    def _begin(self) -> None:
        numbers = list(self.call.numbers.values())
        seed = functions.seeds(self.function, numbers, self.lanes)
        for _, view in self.call.read:
            seed = functions.with_shape(seed, view.shape)
        each = np.arange(self.lanes)
        run = Run(each, self.element, self.element, np.ones_like(each))
        action = Action(Act.CALL, name=self.call.extern.node.name)
        self.ev.move(action, run, lambda one, other, lane: (one, other, seed[lane]))

    def _read(self, operand: int, view: View) -> None:
        sample = self._sample(operand, view.numel)

        def columns(source: Array, like: Array, lane: Array) -> tuple[Array, Array, Array]:
            weight = functions.weights(self._place(like, sample, lane), operand, written=False)
            return self.ev.index_of(view, source, lane), self._cell(lane), weight

        self.ev.move(Action(Act.READ), joint(view, None, sample, self.lanes), columns)

    def _made(self, made: Made) -> View:
        result = self.ev.region(made.shape, made.dtype, self.lanes)
        sample = self._sample(made.operand, result.numel)

        def columns(target: Array, like: Array, lane: Array) -> tuple[Array, Array, Array]:
            place = self._place(like, sample, lane)
            return self._cell(lane), target, functions.weights(place, made.operand, written=True)

        self.ev.move(Action(Act.MAKE), joint(result, None, sample, self.lanes), columns)
        return result

    def _cell(self, lane: Array) -> Array:
        assert self.ev.cells is not None
        return self.ev.cells.first(self.element[lane])

    def _place(self, like: Array, sample: Array, lane: Array) -> Array:
        """Where in the operand a cell is, from the cell of the sample that is cut like it."""
        assert self.ev.cells is not None
        return self.ev.cells.cuts[like] - sample[lane]

    def _sample(self, operand: int, numel: Int) -> Array:
        """By lane, where the region starts that stands for an operand of so many elements.

        All calls of a function are cut as it is, whether the pattern makes them or a contract.
        """
        sizes, index = np.unique(arrays.broadcast(numel, self.lanes), return_inverse=True)
        starts: list[int] = []
        for size in sizes.tolist():
            key = (self.function, operand, size)
            if key not in self.ev.samples:
                self.ev.samples[key] = int(self.ev.shelf.take(np.array([size]))[0])
            starts.append(self.ev.samples[key])
        return np.array(starts, dtype=np.int64)[index.reshape(-1)]
