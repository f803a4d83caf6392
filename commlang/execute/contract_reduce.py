"""Lists of tensors made into one, and reductions of lists of numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from commlang.execute import contract_arithmetic as arithmetic
from commlang.execute.contract_scope import lists_tensors
from commlang.expand import arrays, functions
from commlang.expand.arrays import is_bool, is_int
from commlang.expand.fault import fail
from commlang.expand.values import SEQUENCES, Op, Value, View, describe, take
from commlang.operations import ReduceOp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlang.execute.contract_evaluator import ContractEvaluator
    from commlang.expand.arrays import Int
    from commlang.expand.scope import Scope
    from commlang.syntax import ast

_NUMBERS: dict[ReduceOp, Callable[[Any, Any], Any]] = {
    ReduceOp.SUM: arrays.add,
    ReduceOp.AVG: arrays.add,
    ReduceOp.PREMUL_SUM: arrays.add,
    ReduceOp.PRODUCT: arrays.multiply,
    ReduceOp.MIN: arrays.minimum,
    ReduceOp.MAX: arrays.maximum,
    ReduceOp.BAND: lambda a, b: a & b,
    ReduceOp.BOR: lambda a, b: a | b,
    ReduceOp.BXOR: lambda a, b: a ^ b,
}


def reduce_tensors(
    ev: ContractEvaluator, node: ast.Call, op: Op, sequence: Any, scope: Scope
) -> View:
    """`op(tensor for …)`: tensors of one shape, reduced element by element."""
    first = _first(node, sequence, scope)
    for i, live in functions.positions(sequence):
        item = _tensor(node, first, functions.item(sequence, i), scope)
        ev.check_shapes(node, first, item, scope, live)

    def compute(lane: int) -> torch.Tensor:
        return arithmetic.reduce(op, _wide_items(ev, sequence, lane))

    return ev.computed(compute, first.shape, first.dtype, scope)


def concat(ev: ContractEvaluator, node: ast.Call, sequence: Any, scope: Scope) -> View:
    """`concat(tensor for …)`: tensors end to end along dim 0."""
    if not lists_tensors(sequence):
        message = f"`concat` needs a list of tensors, not {describe(sequence)}"
        fail(scope, node, "CL103", message)
    first = _first(node, sequence, scope)
    if not first.shape:
        fail(scope, node, "CL112", "`concat` needs tensors of at least one dim")
    rows: Int = 0
    for i, live in functions.positions(sequence):
        item = _tensor(node, first, functions.item(sequence, i), scope)
        ev.check_shapes(node, _row(first), _row(item), scope, live)
        rows = rows + item.shape[0] * live

    def compute(lane: int) -> torch.Tensor:
        return torch.cat(list(_wide_items(ev, sequence, lane)))

    return ev.computed(compute, (rows, *first.shape[1:]), first.dtype, scope)


def _first(node: ast.Call, sequence: Any, scope: Scope) -> View:
    empty = sequence.length == 0
    if arrays.anywhere(empty):
        fail(scope, node, "CL102", "the list is empty, so that no shape is known", lanes=empty)
    return functions.item(sequence, 0)


def _tensor(node: ast.Call, first: View, item: Value, scope: Scope) -> View:
    if not isinstance(item, View):
        fail(scope, node, "CL103", f"a list of tensors holds {describe(item)}")
    if item.dtype != first.dtype:
        message = f"the list holds tensors of {first.dtype} and of {item.dtype}"
        fail(scope, node, "CL113", message)
    return item


def _row(view: View) -> View:
    return replace(view, shape=view.shape[1:], strides=view.strides[1:])


def _wide_items(ev: ContractEvaluator, sequence: Any, lane: int) -> Iterator[torch.Tensor]:
    """The items of one lane's list, each loaded when it is asked for."""
    own = take(sequence, lane)
    for i in range(own.length):
        yield ev.wide(take(own.at(i), 0))


def reduce_numbers(node: ast.Call, op: Op, sequence: Value, scope: Scope) -> Value:
    """`op(int for …)` on lists of ints that have one length on all lanes."""
    if not isinstance(sequence, SEQUENCES):
        fail(scope, node, "CL103", f"`{op.op}` needs a list, not {describe(sequence)}")
    if not isinstance(sequence.length, int) or not sequence.length:
        message = f"`{op.op}` of numbers needs a list of one length on all ranks, and not empty"
        fail(scope, node, "CL102", message)
    items = [sequence.at(i) for i in range(sequence.length)]
    for item in items:
        if not is_int(item) and not is_bool(item):
            fail(scope, node, "CL103", f"`{op.op}` needs a list of ints, not of {describe(item)}")
    result: Any = items[0]
    for item in items[1:]:
        result = _NUMBERS[op.op](result, item)
    if op.op is ReduceOp.AVG:
        return arrays.exact_divide(result, len(items))
    return result if op.factor is None else op.factor * result
