"""Whether a condition holds for every rank of every world, for none, or it depends.

Conditions are compared as linear expressions a·rank + b·world + c over 0 <= rank < world. Their
extremes lie at rank 0 of a world of 1, or at infinity along (0, 1) and (1, 1).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from commlang.syntax import ast


class _Linear(NamedTuple):
    rank: int
    world: int
    constant: int

    def minus(self, other: _Linear) -> _Linear:
        return _Linear(*(a - b for a, b in zip(self, other, strict=True)))

    def times(self, factor: int) -> _Linear:
        return _Linear(*(factor * part for part in self))

    @property
    def high(self) -> int | None:
        """The largest value, None if there is none."""
        bounded = self.world <= 0 and self.rank + self.world <= 0
        return self.world + self.constant if bounded else None

    @property
    def low(self) -> int | None:
        """The smallest value, None if there is none."""
        high = self.times(-1).high
        return None if high is None else -high


def truth(node: ast.Expr) -> bool | None:
    """True or False if the condition is so for every rank of every world, else None."""
    match node:
        case ast.Paren(_, inner):
            return truth(inner)
        case ast.Name(_, "true" | "false" as name):
            return name == "true"
        case ast.Unary(_, "not", operand):
            value = truth(operand)
            return None if value is None else not value
        case ast.BoolOp(_, op, operands):
            values = [truth(operand) for operand in operands]
            decisive = op == "or"
            if decisive in values:
                return decisive
            return None if None in values else not decisive
        case ast.Compare(_, ops, operands):
            pairs = zip(ops, pairwise(operands), strict=True)
            values = [_compare(op, left, right) for op, (left, right) in pairs]
            return False if False in values else None if None in values else True
        case _:
            return None


def _compare(op: str, left: ast.Expr, right: ast.Expr) -> bool | None:
    one, two = _linear(left), _linear(right)
    if one is None or two is None:
        return None
    apart = one.minus(two)
    match op:
        case "<":
            return _negative(apart, 0)
        case "<=":
            return _negative(apart, 1)
        case ">":
            return _negative(apart.times(-1), 0)
        case ">=":
            return _negative(apart.times(-1), 1)
        case "==" | "!=":
            equal = _zero(apart)
            return equal if equal is None or op == "==" else not equal
        case _:
            return None


def _negative(value: _Linear, bound: int) -> bool | None:
    """Whether a value is always, or never, less than a bound."""
    if value.high is not None and value.high < bound:
        return True
    return False if value.low is not None and value.low >= bound else None


def _zero(value: _Linear) -> bool | None:
    if value == (0, 0, 0):
        return True
    never = (value.low is not None and value.low > 0) or (value.high is not None and value.high < 0)
    return False if never else None


def _linear(node: ast.Expr) -> _Linear | None:
    match node:
        case ast.Paren(_, inner):
            return _linear(inner)
        case ast.Number(_, int(value), ""):
            return _Linear(0, 0, value)
        case ast.Name(_, "rank"):
            return _Linear(1, 0, 0)
        case ast.Name(_, "world"):
            return _Linear(0, 1, 0)
        case ast.Unary(_, "-", operand):
            value = _linear(operand)
            return value and value.times(-1)
        case ast.Binary(_, "+" | "-" as op, left, right):
            one, two = _linear(left), _linear(right)
            if one is None or two is None:
                return None
            return one.minus(two if op == "-" else two.times(-1))
        case ast.Binary(_, "*", left, right):
            one, two = _linear(left), _linear(right)
            if one is None or two is None or (one[:2] != (0, 0) and two[:2] != (0, 0)):
                return None
            return two.times(one.constant) if one[:2] == (0, 0) else one.times(two.constant)
        case _:
            return None
