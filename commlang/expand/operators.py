"""Operators: what they give for two values, lane by lane."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.dtypes import DType
from commlang.expand import arrays, functions
from commlang.expand.arrays import is_bool, is_int
from commlang.expand.values import Group, Op, Range, Value, item

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.expand.arrays import Bool, Int

_INT_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": arrays.add,
    "-": arrays.subtract,
    "*": arrays.multiply,
    "//": arrays.floor_divide,
    "%": arrays.modulo,
    "/": arrays.exact_divide,
    "**": arrays.power,
    "<<": arrays.shift_left,
    ">>": arrays.shift_right,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_NUMBER_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def combine(op: str, a: Value, b: Value) -> Value | None:
    """`a op b` of ints, or of numbers of which one is no int; None for values of other kinds."""
    if is_int(a) and is_int(b):
        return _INT_OPS[op](a, b)
    if not arrays.is_number(a) or not arrays.is_number(b):
        return None
    if op == "/":
        return arrays.exact_divide(a, b)
    if op not in _NUMBER_OPS:
        return None
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _NUMBER_OPS[op](arrays.real(a), arrays.real(b))
    return _NUMBER_OPS[op](Fraction(a), Fraction(b))


def compare(op: str, a: Value, b: Value) -> Bool | None:
    """`a op b` of numbers, or the equality of two bools, strings, ops or dtypes; else None."""
    if arrays.is_number(a) and arrays.is_number(b):
        return _COMPARE[op](a, b)
    alike = (is_bool(a) and is_bool(b)) or any(
        isinstance(a, kind) and isinstance(b, kind) for kind in (str, Op, DType)
    )
    return _COMPARE[op](a, b) if alike and op in ("==", "!=") else None


def contains(member: Int, sequence: Any) -> Bool:
    """Whether an int is an item of a sequence."""
    if isinstance(sequence, Group):
        table = sequence.table
        known = (member >= 0) & (member < table.size(sequence.frame))
        safe = np.where(known, member, 0) if isinstance(known, np.ndarray) else member * known
        world = table.member(sequence.frame, safe)
        return (table.position(sequence.gid, world) >= 0) & known
    if isinstance(sequence, Range):
        place = arrays.floor_divide(member - sequence.start, sequence.step)
        return (sequence.at(place) == member) & (place >= 0) & (place < sequence.length)
    found: Bool = False
    for i, live in functions.positions(sequence):
        found = found | ((item(sequence, i) == member) & live)
    return found
