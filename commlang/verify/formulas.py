"""From expressions to formulas of the rank (`linear`): what is known of a value in every world."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from commlang.operations import FUNCTIONS
from commlang.records import record
from commlang.syntax import ast
from commlang.verify.linear import (
    ONE,
    RANK,
    SIZE,
    ZERO,
    Flipped,
    Interval,
    Key,
    Linear,
    Remainder,
    Residue,
    Wrapped,
    atom,
    both,
    compared,
    others,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.verify.linear import Guard


@record
class Ranks:
    """All ranks of the world, in order: what `ranks` is."""


@record
class LetFunction:
    """A function of the expression language, and what is visible where it stands."""

    node: ast.LetFunction
    env: Mapping[str, Formula | LetFunction]


Formula: TypeAlias = (
    Linear | Wrapped | Flipped | Remainder | Interval | Residue | Ranks | LetFunction | None
)
"""What is known of a value; None if nothing is. A free value of any type is Linear."""

Env: TypeAlias = "Mapping[str, Formula]"

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


class TooLong(Exception):
    """The text is too large or too deep to be worth a look."""


class Formulas:
    """Evaluates expressions, with an end to how much of that is done."""

    def __init__(self, budget: int) -> None:
        self._budget = budget

    def spend(self) -> None:
        """Count one step; raises TooLong when there have been too many."""
        self._budget -= 1
        if self._budget < 0:
            raise TooLong

    def of(self, node: ast.Expr, env: Env) -> Formula:
        """What is known of an expression."""
        self.spend()
        match node:
            case ast.Paren(_, inner):
                return self.of(inner, env)
            case ast.Number(_, value, unit):
                return whole(value) if isinstance(value, int) else atom(("number", value, unit))
            case ast.String(_, text):
                return atom(("string", text))
            case ast.Name(_, name):
                return env[name] if name in env else atom(("name", name))
            case ast.Unary(_, op, operand):
                return _unary(op, self.of(operand, env))
            case ast.Binary(_, op, left, right):
                return _binary(op, self.of(left, env), self.of(right, env))
            case ast.Compare(_, ops, operands):
                return _compare(ops, [self.of(o, env) for o in operands])
            case ast.BoolOp(_, op, operands):
                return _logical(op, [self.of(o, env) for o in operands])
            case ast.Conditional(_, test, then, other):
                return _free("if", [self.of(o, env) for o in (test, then, other)])
            case ast.ListExpr(_, items):
                return _free("list", [self.of(item, env) for item in items])
            case ast.Attr(_, base, name):
                return _attribute(self.of(base, env), name)
            case ast.Index(_, base, subs):
                return self._index(base, subs, env)
            case ast.Call():
                return self._call(node, env)
            case _:
                return None

    def key(self, node: ast.Expr, env: Env) -> Key | None:
        """Names the value of an expression if it is free."""
        return key_of(self.of(node, env))

    def _index(self, base: ast.Expr, subs: tuple[ast.Expr | ast.Slice, ...], env: Env) -> Formula:
        parts: list[Formula] = []
        for sub in subs:
            if isinstance(sub, ast.Slice):
                ends = [s for s in (sub.low, sub.high, sub.step) if s is not None]
                given = tuple(s is not None for s in (sub.low, sub.high, sub.step))
                parts.append(_free(("slice", given), [self.of(s, env) for s in ends]))
            else:
                parts.append(self.of(sub, env))
        source = self.of(base, env)
        if source == Ranks() and len(parts) == 1:
            match parts[0]:
                case (Linear() | Wrapped(exact=True)) as place if key_of(place) is None:
                    return place  # one outside of the list is refused, if it is computed
                case _:
                    pass
        return _free("index", [source, *parts])

    def _call(self, node: ast.Call, env: Env) -> Formula:
        if not isinstance(node.func, ast.Name) or node.keywords:
            return None
        args = [self.of(arg, env) for arg in node.args]
        name = node.func.id
        function = env.get(name)
        if isinstance(function, LetFunction):
            params = [p.id for p in function.node.params]
            if len(params) != len(args):
                return None
            return self.of(
                function.node.value, {**function.env, **dict(zip(params, args, strict=True))}
            )
        if name in env or name not in FUNCTIONS:
            return None
        if name == "len" and args == [Ranks()]:
            return SIZE
        return _free(("call", name), args)


def key_of(value: Formula) -> Key | None:
    """Names a free value; None for one that is not known to be free."""
    if isinstance(value, Ranks):
        return ("ranks",)
    return value.key if isinstance(value, Linear) and value.free else None


def _free(what: object, parts: list[Formula]) -> Linear | None:
    """A value made of free ones only, which is free itself."""
    keys = [key_of(part) for part in parts]
    return None if None in keys else atom((what, *keys))


def _unary(op: str, value: Formula) -> Formula:
    match op, value:
        case "-", Linear():
            return ZERO.minus(value)
        case "-", Wrapped(inner):
            return Wrapped(ZERO.minus(inner), exact=False)
        case "+", Linear():
            return value
        case "not", Interval() | Residue():
            return others(value)
        case _:
            return _free(("unary", op), [value])


def _binary(op: str, left: Formula, right: Formula) -> Formula:
    if op in ("+", "-"):
        return _sum(left, right, 1 if op == "+" else -1)
    if op == "*":
        return _product(left, right)
    if op == "%":
        return _remainder(left, right)
    if op == "^" and RANK in (left, right):
        mask = key_of(right if left == RANK else left)
        return None if mask is None else Flipped(mask)
    return _free(("binary", op), [left, right])


def _sum(left: Formula, right: Formula, sign: int) -> Formula:
    match left, right:
        case Linear(), Linear():
            return left.plus(right, sign)
        case Wrapped(a), Wrapped(b):
            return Wrapped(a.plus(b, sign), exact=False)
        case Wrapped(a), Linear():
            return Wrapped(a.plus(right, sign), exact=False)
        case Linear(), Wrapped(b):
            return Wrapped(left.plus(b, sign), exact=False)
        case _:
            return None


def _product(left: Formula, right: Formula) -> Formula:
    for a, b in ((left, right), (right, left)):
        if isinstance(a, Linear) and a.free and not a.terms:
            if isinstance(b, Linear):
                return ZERO.plus(b, a.constant)
            if isinstance(b, Wrapped):
                return Wrapped(ZERO.plus(b.inner, a.constant), exact=False)
    return _free(("binary", "*"), sorted([left, right], key=repr))


def _remainder(left: Formula, right: Formula) -> Formula:
    if right == SIZE:
        match left:
            case Linear(slope) if slope:
                return Wrapped(left.residue())
            case Wrapped(inner) if inner.slope:
                return Wrapped(inner.residue())
            case Linear():
                return _free("wrapped", [left.residue()])
            case _:
                return None
    if left == RANK and isinstance(right, Linear) and not right.terms and right.constant >= 2:
        return Remainder(right.constant)
    return _free(("binary", "%"), [left, right])


def _compare(ops: tuple[str, ...], values: list[Formula]) -> Formula:
    if all(key_of(value) is not None for value in values):
        return _free(("compare", ops), values)
    found: Guard | None = None
    for op, left, right in zip(ops, values, values[1:], strict=False):
        guard = _guard(op, left, right)
        found = guard if found is None or guard is None else both(found, guard)
        if found is None:
            return None
    return found


def _guard(op: str, left: Formula, right: Formula) -> Guard | None:
    if isinstance(right, Linear) and right.free:
        return compared(op, left, right)
    if isinstance(left, Linear) and left.free and op in _MIRRORED:
        return compared(_MIRRORED[op], right, left)
    return None


def _logical(op: str, values: list[Formula]) -> Formula:
    if all(key_of(value) is not None for value in values):
        return _free(("logical", op), values)
    if op != "and":
        return None
    found: Guard | None = None
    for value in values:
        if not isinstance(value, Interval | Residue):
            return None
        found = value if found is None else both(found, value)
        if found is None:
            return None
    return found


def _attribute(base: Formula, name: str) -> Formula:
    if base != Ranks():
        return None
    match name:
        case "size":
            return SIZE
        case "index":
            return RANK
        case "next":
            return Wrapped(RANK.plus(ONE))
        case "prev":
            return Wrapped(RANK.minus(ONE))
        case _:
            return None
