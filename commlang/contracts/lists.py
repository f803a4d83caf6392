"""Lists of tensors made into one, and reductions of lists of numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.contracts.computed import Joined, Reduced
from commlang.contracts.scope import lists_tensors
from commlang.expand import arrays, functions
from commlang.expand.arrays import is_bool, is_int
from commlang.expand.fault import fail
from commlang.expand.local import flatten
from commlang.expand.values import SEQUENCES, Items, Op, Value, View, describe, is_uniform, take
from commlang.operations import ReduceOp

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.contracts.evaluator import ContractEvaluator
    from commlang.expand.arrays import Array, Int
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
    _check_written(ev, node, first, sequence, scope, rows=False)
    items, _, owner = spread_list(sequence, scope.lanes)
    _same_kind(node, first, items, scope)
    wanted = take(first, owner)
    _check(ev, node, wanted, items, owner, scope)
    return ev.computed(Reduced(op, sequence), first.shape, first.dtype, scope)


def concat(ev: ContractEvaluator, node: ast.Call, sequence: Any, scope: Scope) -> View:
    """`concat(tensor for …)`: tensors end to end along dim 0."""
    if not lists_tensors(sequence):
        message = f"`concat` needs a list of tensors, not {describe(sequence)}"
        fail(scope, node, "CL103", message)
    first = _first(node, sequence, scope)
    if not first.shape:
        fail(scope, node, "CL112", "`concat` needs tensors of at least one dim")
    _check_written(ev, node, first, sequence, scope, rows=True)
    items, counts, owner = spread_list(sequence, scope.lanes)
    _same_kind(node, first, items, scope)
    _check(ev, node, _row(take(first, owner)), _row(items), owner, scope)
    rows = arrays.broadcast(items.shape[0], len(owner))
    ends = np.append(0, np.cumsum(rows))
    upto = np.cumsum(counts)
    total: Int = ends[upto] - ends[upto - counts]
    if len(counts) == 1:
        total = int(total[0])
    return ev.computed(Joined(sequence), (total, *first.shape[1:]), first.dtype, scope)


def spread_list(sequence: Any, lanes: int) -> tuple[Any, Array, Array]:
    """The items of a list on lanes of their own, how many each lane has, and whose each is.

    A list that is the same on all lanes is taken once, as if there were one lane.
    """
    lanes = 1 if is_uniform(sequence) else lanes
    items, counts = flatten(sequence, lanes)
    counts = arrays.broadcast(counts, lanes)
    return items, counts, np.repeat(np.arange(lanes), counts)


def _first(node: ast.Call, sequence: Any, scope: Scope) -> View:
    empty = sequence.length == 0
    if arrays.anywhere(empty):
        fail(scope, node, "CL102", "the list is empty, so that no shape is known", lanes=empty)
    return functions.item(sequence, 0)


def _same_kind(node: ast.Call, first: View, items: Value, scope: Scope) -> None:
    if not isinstance(items, View):
        fail(scope, node, "CL103", f"a list of tensors holds {describe(items)}")
    if items.dtype != first.dtype:
        message = f"the list holds tensors of {first.dtype} and of {items.dtype}"
        fail(scope, node, "CL113", message)


def _check_written(
    ev: ContractEvaluator, node: ast.Call, first: View, sequence: Any, scope: Scope, *, rows: bool
) -> None:
    """Refuse items of a list that is written out: they may differ in kind and number of dims."""
    for item in sequence.items if isinstance(sequence, Items) else ():
        _same_kind(node, first, item, scope)
        ev.check_shapes(node, _row(first) if rows else first, _row(item) if rows else item, scope)


def _check(
    ev: ContractEvaluator, node: ast.Call, wanted: View, items: View, owner: Array, scope: Scope
) -> None:
    """Refuse items of different shapes, on the lane whose list they are in."""
    if len(owner):
        inner = scope.narrow(owner)
        ev.check_shapes(node, wanted, items, inner)


def _row(view: View) -> View:
    return replace(view, shape=view.shape[1:], strides=view.strides[1:])


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
