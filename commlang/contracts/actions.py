"""What a flow does to the values of its target: the meaning of every operation, in one place."""

from __future__ import annotations

import zlib
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts import field
from commlang.operations import ReduceOp
from commlang.records import record

if TYPE_CHECKING:
    from commlang.dtypes import DType
    from commlang.program.columns import Array


class Act(Enum):
    """Kinds of actions; `extra` is the number that a flow brings along."""

    COPY = "copy"
    ACCUMULATE = "accumulate"  # target op source
    REDUCE = "reduce"  # all sources of one target, reduced
    SCALE = "scale"  # times extra
    FILL = "fill"  # extra itself
    INVERT = "invert"  # one divided by the target
    FORGET = "forget"  # something that nothing is known of; extra tells it from others
    CALL = "call"  # a call that has read nothing yet; extra is its function and ints
    READ = "read"  # all sources of one target, summed up with weights that extra and place give
    MAKE = "make"  # a function of the source and of extra and place


@record
class Action:
    """An action. `source` and `target` are dtypes where a cast may lie between them."""

    act: Act
    op: ReduceOp | None = None
    factor: Fraction | None = None
    source: DType | None = None
    target: DType | None = None
    count: int = 1
    """How many values an `avg` is taken of."""
    name: str = ""
    """The function of a call."""


def effective(op: ReduceOp, dtype: DType | None) -> ReduceOp:
    """The op that is really done: on bools, sums are disjunctions and products conjunctions."""
    if dtype is None or dtype.family != "bool":
        return op
    if op in (ReduceOp.SUM, ReduceOp.MAX):
        return ReduceOp.BOR
    return ReduceOp.BAND if op in (ReduceOp.PRODUCT, ReduceOp.MIN) else op


def cast_key(source: DType | None, target: DType | None) -> int:
    """0 if a cast keeps every value (up to rounding), else a number for the function it is."""
    if source is None or target is None or source == target or _keeps(source, target):
        return 0
    return zlib.crc32(target.name.encode()) | 1 << 40


def _keeps(source: DType, target: DType) -> bool:
    if target.family == "complex" or source.family == "bool":
        return True
    if source.family == "complex" or target.family == "bool":
        return False
    if target.family == "float":
        return True
    if source.family == "float" or (source.family == "int" and target.family == "uint"):
        return False
    signed = source.family == "uint" and target.family == "int"
    return target.itemsize - signed >= source.itemsize


def is_whole(dtype: DType | None) -> bool:
    """Whether a dtype holds integers alone, so that division rounds."""
    return dtype is not None and dtype.family not in ("float", "complex")


AVERAGED, SCALED, INVERTED = 1 << 41, 1 << 42, 1 << 43
"""Keys of the functions that division and fractional factors are on integers."""


def rounding_key(factor: Fraction, dtype: DType | None) -> int:
    """0 if a product with the factor is exact, else a number for the function that it is."""
    if factor.denominator == 1 or not is_whole(dtype):
        return 0
    return field.mix_one(SCALED, factor.numerator, factor.denominator)


def prepared(action: Action, values: Array) -> Array:
    """Sources as they enter: cast, and multiplied for premul_sum."""
    key = cast_key(action.source, action.target)
    if key:
        values = field.opaque(values, key)
    if action.factor is not None:
        values = scaled(values, action.factor, action.target)
    return values


def scaled(values: Array, factor: Fraction, dtype: DType | None) -> Array:
    """Values times a number of the language."""
    key = rounding_key(factor, dtype)
    if key:
        return field.opaque(values, key)
    return field.multiply(values, np.uint64(field.number(factor)))


def finished(action: Action, values: Array) -> Array:
    """What a reduction comes to: a mean is divided."""
    if action.op is not ReduceOp.AVG or action.count == 1:
        return values
    if is_whole(action.target):
        return field.opaque(values, field.mix_one(AVERAGED, action.count))
    return field.multiply(values, np.uint64(field.number(Fraction(1, action.count))))


def inverted(action: Action, values: Array) -> Array:
    """One divided by the values."""
    if is_whole(action.target):
        return field.opaque(values, INVERTED)
    return field.inverse(values)
