"""`fold(f, start, list)`: what a list comes to, one item after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.contracts.computed import Filled
from commlang.expand import arrays
from commlang.expand.fault import fail
from commlang.expand.functions import positions
from commlang.expand.values import Function, Value, View, choose, describe, item, take
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.contracts.evaluator import ContractEvaluator
    from commlang.expand.scope import Scope
    from commlang.syntax.ast import Call


def fold(ev: ContractEvaluator, node: Call, scope: Scope) -> Value:
    """`f(… f(f(start, first), second) …, last)`; a lane with a shorter list ends earlier."""
    function = scope.lookup(node.args[0].id) if isinstance(node.args[0], ast.Name) else None
    if not isinstance(function, Function):
        message = f"`fold` needs a `let` function, not {describe(function)}"
        fail(scope, node.args[0], "CL103", message)
    value = ev.eval(node.args[1], scope)
    sequence = ev.sequence(node.args[2], scope, "what `fold` goes through")
    for i, live in positions(sequence):
        each = item(sequence, i)
        if arrays.everywhere(live):
            value = ev.apply(node, function, (value, each), scope)
            continue
        lanes = np.flatnonzero(live)
        inner = scope.narrow(lanes)
        after = ev.apply(node, function, (take(value, lanes), take(each, lanes)), inner)
        where = np.zeros(scope.lanes, dtype=np.int64)
        where[lanes] = np.arange(len(lanes))
        both = ev.alike((value, take(after, where)), scope)
        value = choose(both, np.asarray(live).astype(np.int64))
    return value


def filled(ev: ContractEvaluator, value: Any, like: View, scope: Scope) -> View:
    """A tensor of which every element is a number, shaped like one whose shape lanes share."""
    shape = tuple(arrays.squeeze(dim) if arrays.is_array(dim) else dim for dim in like.shape)
    return ev.computed(Filled(value), shape, like.dtype, scope)
