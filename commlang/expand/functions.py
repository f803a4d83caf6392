"""The functions of the expression language."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from commlang.expand import arrays
from commlang.expand.arrays import Bool, Int, is_bool, is_int
from commlang.expand.fault import fail
from commlang.expand.values import (
    SEQUENCES,
    Op,
    Ragged,
    Range,
    Sliced,
    Value,
    View,
    Zipped,
    describe,
    item,
)
from commlang.operations import FUNCTIONS, ReduceOp
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlang.expand.expressions import Expressions
    from commlang.expand.scope import Scope
    from commlang.syntax import ast


MAX_WALK = 1 << 18
"""Longest list that is gone through item by item, for all lanes at once."""


@record
class _Call:
    """One call being evaluated: what a function needs to refuse its arguments."""

    evaluator: Expressions
    node: ast.Call
    scope: Scope
    name: str

    def fail(self, message: str, *, lanes: Bool = True, hint: str | None = None) -> NoReturn:
        fail(self.scope, self.node, "CL102", f"{self.name}: {message}", lanes=lanes, hint=hint)

    def ints(self, args: list[Value]) -> list[Int]:
        for arg in args:
            if not is_int(arg):
                hint = "write `//` to round down" if isinstance(arg, Fraction) else None
                self.fail(f"needs ints, not {describe(arg)}", hint=hint)
        return args

    def counted(self, value: Value) -> Any:
        """An int, or a truth value, which counts as 0 or 1 in a sum."""
        if not is_int(value) and not is_bool(value):
            self.fail(f"needs a list of ints, not of {describe(value)}")
        return value

    def listed(self, arg: Value) -> Any:
        if not isinstance(arg, SEQUENCES):
            hint = "did you mean `range(…)`?" if is_int(arg) else None
            self.fail(f"needs a list, not {describe(arg)}", hint=hint)
        return arg


def call(evaluator: Expressions, node: ast.Call, name: str, scope: Scope) -> Value:
    """Evaluate a call of a built-in function."""
    here = _Call(evaluator, node, scope, name)
    least, most = FUNCTIONS[name]
    if node.keywords:
        here.fail("takes no keyword arguments")
    if not least <= len(node.args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        here.fail(f"takes {wanted} arguments, not {len(node.args)}")
    args = [evaluator.eval(arg, scope) for arg in node.args]
    return _FUNCTIONS[name](here, args)


def positions(sequence: Any) -> Iterator[tuple[int, Bool]]:
    """Every position that some lane has, with the lanes that have it."""
    length = sequence.length
    most = arrays.top(length)
    if most > MAX_WALK:
        raise arrays.ArithmeticFault(f"a list of {most:,} items is too long for this")
    for i in range(most):
        yield i, True if isinstance(length, int) else i < length


def _range(call: _Call, args: list[Value]) -> Range:
    bounds = call.ints(args)
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) == 3 else 1
    if arrays.anywhere(step == 0):
        call.fail("the step must not be 0", lanes=step == 0)
    towards = 1 if arrays.everywhere(step > 0) else np.where(step > 0, 1, -1)
    towards = -1 if arrays.everywhere(step < 0) else towards
    length = arrays.floor_divide(stop - start + step - towards, step)
    return Range(start, step, arrays.maximum(length, 0))


def _reversed(call: _Call, args: list[Value]) -> Sliced:
    sequence = call.listed(args[0])
    return Sliced(sequence, sequence.length - 1, -1, sequence.length)


def _enumerate(call: _Call, args: list[Value]) -> Zipped:
    sequence = call.listed(args[0])
    (start,) = call.ints(args[1:]) or [0]
    return Zipped((Range(start, 1, sequence.length), sequence), sequence.length)


def _zip(call: _Call, args: list[Value]) -> Zipped:
    parts = [call.listed(arg) for arg in args]
    for part in parts[1:]:
        differs = part.length != parts[0].length
        if arrays.anywhere(differs):
            call.fail("the lists differ in length", lanes=differs)
    return Zipped(tuple(parts), parts[0].length)


def _len(call: _Call, args: list[Value]) -> Int:
    if isinstance(args[0], View) and args[0].shape:
        return args[0].shape[0]
    return call.listed(args[0]).length


def _sum(call: _Call, args: list[Value]) -> Value:
    sequence = call.listed(args[0])
    if isinstance(sequence, Ragged) and (is_int(sequence.flat) or is_bool(sequence.flat)):
        flat = sequence.flat
        if arrays.is_array(flat):
            if arrays.magnitude(flat) * arrays.top(sequence.length) >= arrays.LIMIT:
                raise arrays.ArithmeticFault("the sum is too large for a 64-bit integer")
            ends = np.concatenate([[0], np.cumsum(flat[sequence.index], dtype=np.int64)])
            return arrays.squeeze(ends[sequence.first + sequence.length] - ends[sequence.first])
        return arrays.multiply(int(flat), sequence.length)
    result: Any = 0
    for i, live in positions(sequence):
        value = item(sequence, i)
        if isinstance(value, Fraction) and live is True:
            result = Fraction(result) + value
            continue
        number = call.counted(value)
        result = arrays.add(result, number * live if live is not True else number)
    return result


def _extreme(
    pick: Callable[[Int, Int], Int], builtin: Callable[..., Any]
) -> Callable[[_Call, list[Value]], Value]:
    def function(call: _Call, args: list[Value]) -> Value:
        if all(isinstance(a, int | Fraction) and not isinstance(a, bool) for a in args):
            return builtin(args) if len(args) > 1 else call.listed(args[0])
        if len(args) > 1:
            first, *rest = call.ints(args)
            for value in rest:
                first = pick(first, value)
            return first
        sequence = call.listed(args[0])
        empty = sequence.length == 0
        if arrays.anywhere(empty):
            call.fail("the list is empty", lanes=empty)
        (result,) = call.ints([item(sequence, 0)])
        for i, live in positions(sequence):
            (value,) = call.ints([item(sequence, i)])
            result = pick(result, value if live is True else np.where(live, value, result))
        return result

    return function


def _abs(call: _Call, args: list[Value]) -> Int:
    return abs(call.ints(args)[0])


def _all(call: _Call, args: list[Value]) -> Bool:
    result: Bool = True
    for value, live in _bools(call, args[0]):
        result = result & (value | arrays.logical_not(live))
    return result


def _any(call: _Call, args: list[Value]) -> Bool:
    result: Bool = False
    for value, live in _bools(call, args[0]):
        result = result | (value & live)
    return result


def _bools(call: _Call, arg: Value) -> Iterator[tuple[Bool, Bool]]:
    sequence = call.listed(arg)
    for i, live in positions(sequence):
        value = item(sequence, i)
        if not is_bool(value):
            call.fail(f"needs a list of bools, not of {describe(value)}")
        yield value, live


def _share(call: _Call, args: list[Value]) -> Int:
    n, k, i = call.ints(args)
    outside = (i < 0) | (i >= k)
    if arrays.anywhere(outside):
        call.fail("the third argument is not one of the chunks", lanes=outside)
    return arrays.share(n, k, i)


def _premul_sum(call: _Call, args: list[Value]) -> Op:
    factor = args[0]
    if isinstance(factor, bool) or not isinstance(factor, int | Fraction):
        call.fail(f"needs a factor that is the same on every rank, not {describe(factor)}")
    return Op(ReduceOp.PREMUL_SUM, Fraction(factor))


_FUNCTIONS: dict[str, Callable[[_Call, list[Value]], Value]] = {
    "range": _range,
    "reversed": _reversed,
    "enumerate": _enumerate,
    "zip": _zip,
    "len": _len,
    "sum": _sum,
    "min": _extreme(arrays.minimum, min),
    "max": _extreme(arrays.maximum, max),
    "abs": _abs,
    "log2": lambda call, args: arrays.floor_log2(call.ints(args)[0]),
    "log2ceil": lambda call, args: arrays.ceil_log2(call.ints(args)[0]),
    "share": _share,
    "all": _all,
    "any": _any,
    "premul_sum": _premul_sum,
}

assert _FUNCTIONS.keys() == FUNCTIONS.keys()
