"""What a contract computes from tensors: the few forms that a tensor in it can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from commlang.records import record

if TYPE_CHECKING:
    from commlang.dtypes import DType
    from commlang.expand.arrays import Int
    from commlang.expand.values import Op, Value, View
    from commlang.resolve.modules import Definition


@record
class Combined:
    """`a op b`, element by element; one of the two may be a number."""

    op: str
    a: Value
    b: Value


@record
class Reduced:
    """`op(…)` of a list of tensors of one shape, which is not empty."""

    op: Op
    items: Any


@record
class Joined:
    """`concat(…)` of a list of tensors, along dim 0."""

    items: Any


@record
class Packed:
    """A view with its elements in row-major order."""

    view: View


@record
class Filled:
    """A tensor with one number everywhere, which may differ from lane to lane."""

    value: Value


@record
class Made:
    """A tensor that an extern writes: the `operand`-th of its tensors."""

    operand: int
    shape: tuple[Int, ...]
    dtype: DType


@record
class Called:
    """A call of an extern: what it reads, by number of the tensor, and its other arguments."""

    extern: Definition
    read: tuple[tuple[int, View], ...]
    numbers: dict[str, Value]
    made: tuple[Made, ...]


Computed: TypeAlias = Combined | Reduced | Joined | Packed | Filled

OPERATORS: tuple[str, ...] = ("+", "-", "*", "/", "&", "|", "^", "min", "max")
"""What two tensors, or a tensor and a number, can be combined with."""
