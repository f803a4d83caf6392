"""Expressions of the reference interpreter, read off the language's definition."""

from __future__ import annotations

import math
import operator
from collections import ChainMap
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from commlang.dtypes import DTYPES
from commlang.operations import REDUCE_OPS
from commlang.syntax import ast
from tests.reference.values import Chunks, Closure, DTypeName, Fault, Group, Op, Tensor, items

if TYPE_CHECKING:
    from collections.abc import Callable

Names = ChainMap[str, Any]

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "**": operator.pow,
    "/": lambda a, b: whole(Fraction(a) / Fraction(b)),
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda a, b: a in items(b),
    "not in": lambda a, b: a not in items(b),
}


def whole(value: Fraction) -> Any:
    return value.numerator if value.denominator == 1 else value


def evaluate(node: Any, names: Names) -> Any:  # noqa: C901 (one case per construct)
    """The value of an expression for the rank whose names these are."""
    match node:
        case ast.Name(_, name):
            return _name(name, names)
        case ast.Number(_, value) | ast.String(_, value):
            return value
        case ast.Paren(_, inner):
            return evaluate(inner, names)
        case ast.Unary(_, "not", operand):
            return not _bool(operand, names)
        case ast.Unary(_, op, operand):
            value = evaluate(operand, names)
            return {"-": operator.neg, "+": operator.pos, "~": operator.inv}[op](value)
        case ast.Binary(_, op, left, right):
            return _binary(op, evaluate(left, names), evaluate(right, names))
        case ast.BoolOp(_, "and", operands):
            return all(_bool(operand, names) for operand in operands)
        case ast.BoolOp(_, _, operands):
            return any(_bool(operand, names) for operand in operands)
        case ast.Compare(_, ops, operands):
            values = [evaluate(operand, names) for operand in operands]
            pairs = zip(ops, values[:-1], values[1:], strict=True)
            return False not in [COMPARE[op](a, b) for op, a, b in pairs]
        case ast.Conditional(_, test, then, other):
            return evaluate(then if _bool(test, names) else other, names)
        case ast.ListExpr(_, parts):
            return [evaluate(part, names) for part in parts]
        case ast.Comprehension(_, element, clauses):
            return comprehension(element, clauses, names)
        case ast.Attr(_, base, name):
            return _attribute(evaluate(base, names), name, names)
        case ast.Index():
            return _index(node, names)
        case ast.Call(_, ast.Attr(_, base, name), args, keywords):
            named = {k.name: evaluate(k.value, names) for k in keywords}
            return _method(evaluate(base, names), name, [evaluate(a, names) for a in args], named)
        case ast.Call(_, ast.Name(_, name), args):
            return _call(name, [evaluate(arg, names) for arg in args], names)
        case _:
            raise Fault(f"no value: {node}")


def _name(name: str, names: Names) -> Any:
    if name in names:
        return names[name]
    if name in REDUCE_OPS:
        return Op(name)
    if name in ("true", "false"):
        return name == "true"
    if name in DTYPES:
        return DTypeName(name)
    raise Fault(f"unknown name {name}")


def _bool(node: Any, names: Names) -> bool:
    value = evaluate(node, names)
    if not isinstance(value, bool):
        raise Fault("a condition is a bool")
    return value


def _binary(op: str, a: Any, b: Any) -> Any:
    if any(isinstance(v, bool) or not isinstance(v, int | Fraction) for v in (a, b)):
        raise Fault("arithmetic needs numbers")
    if (op in ("//", "%", "/") and b == 0) or (op in ("<<", ">>", "**") and b < 0):
        raise Fault("no result")
    return BINARY[op](a, b)


def bind(targets: tuple[Any, ...], value: Any, names: Names) -> Names:
    """New names around those of a loop's body."""
    inner = names.new_child()
    if len(targets) == 1:
        inner[targets[0].id] = value
        return inner
    for target, part in zip(targets, items(value), strict=True):
        inner[target.id] = part
    return inner


def comprehension(element: Any, clauses: tuple[Any, ...], names: Names) -> list[Any]:
    """The items of a list comprehension."""
    if not clauses:
        return [evaluate(element, names)]
    first, *rest = clauses
    found: list[Any] = []
    for value in items(evaluate(first.iterable, names)):
        inner = bind(first.targets, value, names)
        if first.condition is None or _bool(first.condition, inner):
            found += comprehension(element, tuple(rest), inner)
    return found


def _attribute(base: Any, name: str, names: Names) -> Any:
    if isinstance(base, Tensor):
        return {"shape": list(base.shape), "numel": base.index.size, "ndim": base.index.ndim}[name]
    if name == "size":
        return len(base)
    me = names["ranks"].members[names["rank"]]
    if me not in base.members:
        raise Fault("not a member")
    index = base.members.index(me)
    place = {"index": index, "next": index + 1, "prev": index - 1}[name]
    return place if name == "index" else base.items()[place % len(base)]


def _index(node: Any, names: Names) -> Any:
    base: Any = evaluate(node.base, names)
    if isinstance(base, Tensor):
        if len(node.subs) > len(base.shape):
            raise Fault("too many indices")
        sizes = base.shape[: len(node.subs)]
        return base.get([_sub(s, n, names) for s, n in zip(node.subs, sizes, strict=True)])
    for sub in node.subs:
        place = _sub(sub, len(base), names)
        if isinstance(base, Chunks) and isinstance(place, slice) and place.step == 1:
            base = base.run(place.start, place.stop)
        else:
            base = items(base)[place]
    return base


def _sub(sub: Any, size: int, names: Names) -> Any:
    """An index or a slice, checked: nothing wraps round but a literal negative."""
    if not isinstance(sub, ast.Slice):
        place = _place(sub, size, names)
        if not 0 <= place < size:
            raise Fault("index out of range")
        return place
    low = 0 if sub.low is None else _place(sub.low, size, names)
    high = size if sub.high is None else _place(sub.high, size, names)
    step = 1 if sub.step is None else evaluate(sub.step, names)
    if not 0 <= low <= high <= size or step < 1:
        raise Fault("slice out of range")
    return slice(low, high, step)


def _place(node: Any, size: int, names: Names) -> int:
    value = evaluate(node, names)
    literal = isinstance(node, ast.Unary) and isinstance(node.operand, ast.Number)
    return value + size if literal and value < 0 else value


def _method(base: Any, name: str, args: list[Any], named: dict[str, Any]) -> Any:
    if name == "chunks":
        k, dim = [*args, *([named["k"]] if "k" in named else []), named.get("dim", 0)][:2]
        if k < 1 or not 0 <= dim < len(base.shape):
            raise Fault("no such chunks")
        return Chunks(base, k, dim)
    if name == "transpose":
        return Tensor(base.buffer, base.index.swapaxes(*args))
    shape = (base.index.size,) if name == "flatten" else tuple(args)
    if not base.contiguous() or math.prod(shape) != base.index.size:
        raise Fault("cannot be reshaped")
    return Tensor(base.buffer, base.index.reshape(shape))


def _call(name: str, args: list[Any], names: Names) -> Any:
    if name in names and isinstance(names[name], Closure):
        closure = names[name]
        inner = closure.names.new_child()
        inner.update(zip((p.id for p in closure.node.params), args, strict=True))
        return evaluate(closure.node.value, inner)
    if name == "premul_sum":
        return Op(name, Fraction(args[0]))
    return FUNCTIONS[name](*args)


def _share(n: int, k: int, i: int) -> int:
    if not 0 <= i < k:
        raise Fault("no such chunk")
    return len(range(n)[i::k])


def _zip(*lists: Any) -> list[Any]:
    if len({len(items(part)) for part in lists}) > 1:
        raise Fault("the lists differ in length")
    return [list(parts) for parts in zip(*map(items, lists), strict=True)]


def _log2(value: int) -> int:
    if value < 1:
        raise Fault("log2 of a number below 1")
    return max(k for k in range(64) if 2**k <= value)


def _extreme(pick: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        values = list(args) if len(args) != 1 else items(args[0])
        if not values:
            raise Fault("the list is empty")
        return pick(values)

    return function


def _range(*args: int) -> list[int]:
    if len(args) == 3 and args[2] == 0:
        raise Fault("the step is 0")
    return list(range(*args))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "range": _range,
    "reversed": lambda v: items(v)[::-1],
    "enumerate": lambda v, start=0: [[i, x] for i, x in enumerate(items(v), start)],
    "zip": _zip,
    "len": lambda v: len(v.index) if isinstance(v, Tensor) else len(items(v)),
    "sum": lambda v: whole(Fraction(sum(items(v)))),
    "min": _extreme(min),
    "max": _extreme(max),
    "abs": abs,
    "log2": _log2,
    "log2ceil": lambda v: _log2(v) + (2 ** _log2(v) < v),
    "share": _share,
    "all": lambda v: all(items(v)),
    "any": lambda v: any(items(v)),
}

__all__ = ["Group", "Names", "bind", "evaluate"]
