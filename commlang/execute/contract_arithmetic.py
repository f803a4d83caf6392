"""Exact arithmetic on the contents of tensors: in float64, int64 or complex128, one fixed order.

The values of a run are small integers (see `fill`), so that nothing is rounded here; a mean is
rounded when it is cast to the dtype that it is compared with.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch

from commlang.execute.memory import torch_dtype
from commlang.operations import ReduceOp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from commlang.dtypes import DType
    from commlang.expand.values import Op

_WIDE = {"float": torch.float64, "complex": torch.complex128}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_FOLD: dict[ReduceOp, Callable[..., torch.Tensor]] = {
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}
_BINARY: dict[str, Callable[..., torch.Tensor]] = {
    "+": torch.add,
    "-": torch.sub,
    "*": torch.mul,
    "&": torch.bitwise_and,
    "|": torch.bitwise_or,
    "^": torch.bitwise_xor,
    "min": torch.minimum,
    "max": torch.maximum,
}
_COMPARE: dict[str, Callable[..., torch.Tensor]] = {
    "<": torch.lt,
    "<=": torch.le,
    ">": torch.gt,
    ">=": torch.ge,
}


def widen(tensor: torch.Tensor, dtype: DType) -> torch.Tensor:
    """A copy in float64, int64 (also for bool) or complex128."""
    return tensor.to(_WIDE.get(dtype.family, torch.int64), copy=True)


def reduce(op: Op, parts: Iterable[torch.Tensor]) -> torch.Tensor:
    """Fold wide tensors of one shape, of which there is at least one, taking one at a time."""
    function = _FOLD.get(op.op, torch.add)
    count, result = 0, None
    for part in parts:
        count += 1
        if op.op is ReduceOp.PREMUL_SUM and op.factor is not None:
            part = scaled(part, op.factor)
        result = part if result is None else function(result, part, out=result)
    assert result is not None
    return scaled(result, Fraction(1, count)) if op.op is ReduceOp.AVG else result


def scaled(tensor: torch.Tensor, factor: Fraction) -> torch.Tensor:
    """A wide tensor times a fraction, rounded once; integers are rounded towards zero."""
    if tensor.is_complex():
        return torch.view_as_complex(scaled(torch.view_as_real(tensor), factor))
    product = tensor * factor.numerator
    if factor.denominator == 1:
        return product
    rounding = None if tensor.is_floating_point() else "trunc"
    return torch.div(product, factor.denominator, rounding_mode=rounding)


def combine(op: str, a: Any, b: Any) -> torch.Tensor:
    """`a op b` of wide tensors, of which one may be a number."""
    if op == "/" and isinstance(b, int | Fraction):
        return scaled(a, 1 / Fraction(b))
    if op == "*" and isinstance(b, Fraction):
        return scaled(a, b)
    if op == "*" and isinstance(a, Fraction):
        return scaled(b, a)
    if op == "/":
        return torch.div(_operand(a, b), _operand(b, a))
    return _BINARY[op](_operand(a, b), _operand(b, a))


def _operand(value: Any, other: Any) -> torch.Tensor:
    """A number as a tensor of the other operand's kind."""
    if isinstance(value, torch.Tensor):
        return value
    number = float(value) if isinstance(value, Fraction) else value
    return torch.tensor(number, dtype=other.dtype, device=other.device)


def wrong(op: str, got: torch.Tensor, expected: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Which elements fail `got op expected`, both of a dtype; `==` and `!=` compare bits."""
    if op in _COMPARE:
        return ~_COMPARE[op](widen(got, dtype), widen(expected, dtype))
    differs = _bits(got, dtype).ne(_bits(expected, dtype))
    if dtype.itemsize > 8:
        differs = differs.any(-1)
    return differs if op == "==" else ~differs


def cast(tensor: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Round to a dtype."""
    return tensor.to(torch_dtype(dtype))


def _bits(tensor: torch.Tensor, dtype: DType) -> torch.Tensor:
    """The elements as integers; those of 16 bytes as a further dim of two."""
    tensor = tensor.contiguous()
    if dtype.itemsize > 8:
        return torch.view_as_real(tensor).view(torch.int64)
    return tensor.view(_BITS[dtype.itemsize])
