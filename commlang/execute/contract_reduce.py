"""Lists of tensors made into one, and reductions of lists of numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from commlang.execute import contract_arithmetic as arithmetic
from commlang.execute.contract_scope import lists_tensors
from commlang.expand import arrays, functions
from commlang.expand.arrays import is_int
from commlang.expand.fault import fail
from commlang.expand.values import SEQUENCES, Op, Value, View, describe, take
from commlang.operations import ReduceOp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlang.execute.contract_evaluator import ContractEvaluator
    from commlang.expand.arrays import Int
    from commlang.expand.scope import Scope
    from commlang.syntax import ast


def reduce_tensors(
    ev: ContractEvaluator, node: ast.Call, op: Op, sequence: Any, scope: Scope
) -> View:
    """`op(tensor for …)`: tensors of one shape, reduced element by element."""
    first = _first(ev, node, sequence, scope)
    for item, live in _items(sequence):
        _same_dtype(node, first, item, scope)
        short = functions.item(sequence, 0) if live is True else None
        ev.check_shapes(node, short or take_live(first, item, live), item, scope)

    def compute(lane: int) -> torch.Tensor:
        return arithmetic.reduce(op, map(ev.wide, _of_lane(sequence, lane)))

    return ev.computed(compute, first.shape, first.dtype, scope)


def concat(ev: ContractEvaluator, node: ast.Call, sequence: Any, scope: Scope) -> View:
    """`concat(tensor for …)`: tensors end to end along dim 0."""
    if not lists_tensors(sequence):
        message = f"`concat` needs a list of tensors, not {describe(sequence)}"
        fail(scope, node, "CL103", message)
    first = _first(ev, node, sequence, scope)
    rows: Int = 0
    for item, live in _items(sequence):
        _same_dtype(node, first, item, scope)
        rows = rows + item.shape[0] * live

    def compute(lane: int) -> torch.Tensor:
        return torch.cat([ev.wide(view) for view in _of_lane(sequence, lane)])

    return ev.computed(compute, (rows, *first.shape[1:]), first.dtype, scope)
