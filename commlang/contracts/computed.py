"""What a contract computes from tensors: the few forms that a tensor in it can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from commlang.records import record

if TYPE_CHECKING:
    from commlang.expand.values import Op, Value, View


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


Computed: TypeAlias = Combined | Reduced | Joined | Packed

OPERATORS: tuple[str, ...] = ("+", "-", "*", "/", "&", "|", "^", "min", "max")
"""What two tensors, or a tensor and a number, can be combined with."""
