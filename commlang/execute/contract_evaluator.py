"""Contracts evaluated on the data of a run; see `commlang.contracts.evaluator`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from commlang.contracts.computed import Combined, Filled, Joined, Packed, Reduced
from commlang.contracts.evaluator import ContractEvaluator
from commlang.execute import contract_arithmetic as arithmetic
from commlang.execute.contract_calls import ScratchCall
from commlang.execute.contract_compare import compare
from commlang.execute.memory import torch_dtype
from commlang.expand import arrays
from commlang.expand.fault import fail
from commlang.expand.values import Value, View, row_major, take
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.contracts.computed import Called, Computed
    from commlang.dtypes import DType
    from commlang.execute.contract_calls import Externs
    from commlang.execute.contract_compare import Difference
    from commlang.execute.contract_data import Tensors
    from commlang.expand.arrays import Bool, Int
    from commlang.expand.record import Nest, Recording
    from commlang.expand.scope import Scope
    from commlang.syntax import ast


@record
class Found:
    """A comparison of tensors that does not hold, and the lane that it was made on."""

    difference: Difference
    scope: Scope
    lane: int

    def lane_of(self, scope: Scope) -> int:
        """The lane in an enclosing scope."""
        index = self.scope.map_to(scope)
        return self.lane if index is None else int(index[self.lane])


class DataEvaluator(ContractEvaluator):
    """Tensors are views whose buffers number entries of `tensors`."""

    def __init__(self, recording: Recording, tensors: Tensors, externs: Externs) -> None:
        super().__init__(recording)
        self.tensors = tensors
        self.externs = externs
        self.differences: list[Found] = []

    def given(self, name: str, view: View, scope: Scope, *, old: bool) -> View:
        return replace(view, buffer=self.tensors.number(name, old=old) + scope.ranks)

    def allocate(
        self,
        name: str,
        dtype: Any,
        shape: tuple[Int, ...],
        node: ast.Node,
        scope: Scope,
        nest: Nest | None,
    ) -> View:
        def refuse() -> torch.Tensor:
            hint = "a contract speaks of the pattern's parameters"
            fail(scope, node, "CL104", f"a contract reads the temp `{name}`", hint=hint)

        return View(self.tensors.add(refuse), 0, shape, row_major(shape), dtype)

    def computed(self, what: Computed, shape: tuple[Int, ...], dtype: DType, scope: Scope) -> View:
        """A tensor for each lane, computed when it is read."""
        add = self.tensors.add
        lanes = range(scope.lanes)
        if isinstance(what, Filled):
            full = partial(self._full, what.value, shape, dtype)
            numbers = [add(partial(full, lane)) for lane in lanes]
        else:
            numbers = [add(partial(self._compute, what, lane)) for lane in lanes]
        return View(np.array(numbers, dtype=np.int64), 0, shape, row_major(shape), dtype)

    def called(self, call: Called, scope: Scope) -> list[View]:
        """What an extern writes, on each lane: it is called when one of the results is read."""
        lanes = range(scope.lanes)
        ranks = [int(rank) for rank in scope.ranks]
        calls = [ScratchCall(self.tensors, self.externs, call, lane, ranks[lane]) for lane in lanes]
        views: list[View] = []
        for number, made in enumerate(call.made):
            entries = [self.tensors.add(partial(one.result, number)) for one in calls]
            buffer = np.array(entries, dtype=np.int64)
            views.append(View(buffer, 0, made.shape, row_major(made.shape), made.dtype))
        return views

    def _full(self, value: Value, shape: tuple[Int, ...], dtype: DType, lane: int) -> torch.Tensor:
        number = arrays.lane(value, lane)
        number = float(number) if isinstance(number, Fraction) else number
        dims = [int(arrays.lane(dim, lane)) for dim in shape]
        return arithmetic.widen(torch.full(dims, number, dtype=torch_dtype(dtype)), dtype)

    def _compute(self, what: Computed, lane: int) -> torch.Tensor:
        match what:
            case Combined(op, a, b):
                return arithmetic.combine(op, self._operand(a, lane), self._operand(b, lane))
            case Reduced(op, items):
                return arithmetic.reduce(op, self._items(items, lane))
            case Joined(items):
                return torch.cat(list(self._items(items, lane)))
            case Packed(view):
                return self._wide(take(view, lane))
            case Filled():
                raise TypeError(what)

    def _operand(self, value: Value, lane: int) -> Any:
        return (
            self._wide(take(value, lane)) if isinstance(value, View) else arrays.lane(value, lane)
        )

    def _items(self, sequence: Any, lane: int) -> Iterator[torch.Tensor]:
        """The items of one lane's list, each loaded when it is asked for."""
        own = take(sequence, lane)
        for i in range(own.length):
            yield self._wide(take(own.at(i), 0))

    def _wide(self, view: View) -> torch.Tensor:
        """The elements of a view on a single lane, for exact arithmetic."""
        return arithmetic.widen(self.tensors.load(view), view.dtype)

    def compare_tensors(self, node: ast.Expr, op: str, a: Value, b: Value, scope: Scope) -> Bool:
        holds = np.ones(scope.lanes, dtype=np.bool_)
        for lane in range(scope.lanes):
            difference = compare(self.tensors, op, take(a, lane), take(b, lane))
            if difference is not None:
                holds[lane] = False
                self.differences.append(Found(difference, scope, lane))
        return holds
