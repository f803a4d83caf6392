"""Two tensors, or a tensor and a number, compared element by element."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import torch

from commlang.execute import contract_arithmetic as arithmetic
from commlang.expand.values import View, take
from commlang.records import record

if TYPE_CHECKING:
    from commlang.execute.contract_data import Given, Tensors

Number = int | float | complex | bool | Fraction

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@record
class Difference:
    """Elements that do not compare as they should; `index` is where the first of them is.

    The index is one of the parameter `place.name` as rank `place.rank` has it; if neither side is
    plainly a parameter, `place` is None and the index one of the compared value. `expected` holds
    if `got op expected` does not.
    """

    op: str
    place: Given | None
    index: tuple[int, ...]
    expected: Number
    got: Number
    wrong: int
    elements: int


def compare(
    tensors: Tensors, op: str, left: View | Number, right: View | Number
) -> Difference | None:
    """Compare on a single lane; None if all elements satisfy `left op right`.

    What the run made is `got`: a parameter at the end of the run, if one side is just that, else
    the left side. The other side is rounded to its dtype, and `==` compares bits.
    """
    if not isinstance(left, View) or (_rating(tensors, right) > _rating(tensors, left)):
        left, right, op = right, left, _MIRRORED.get(op, op)
    assert isinstance(left, View)
    got = arithmetic.cast(tensors.load(left), left.dtype)
    if isinstance(right, View):
        expected = arithmetic.cast(tensors.load(right), left.dtype)
    else:
        number = torch.tensor(float(right) if isinstance(right, Fraction) else right)
        expected = arithmetic.cast(number.to(got.device), left.dtype).expand(got.shape)
    mask = arithmetic.wrong(op, got, expected, left.dtype)
    count = int(mask.sum())
    if not count:
        return None
    first = int(mask.reshape(-1).cpu().numpy().argmax())
    index = unravel(first, tuple(got.shape))
    place, found = _place(tensors, left, index)
    values = expected[index].item(), got[index].item()
    return Difference(op, place, found, *values, count, got.numel())


def _rating(tensors: Tensors, value: View | Number) -> int:
    """How plainly a value is what the run made: a parameter at the end, at entry, or computed."""
    given = tensors.given(int(value.buffer)) if isinstance(value, View) else None
    return 0 if given is None else 1 if given.old else 2


def _place(
    tensors: Tensors, view: View, index: tuple[int, ...]
) -> tuple[Given | None, tuple[int, ...]]:
    """The parameter that an element of a view lies in, and its index there."""
    given = tensors.given(int(view.buffer))
    if given is None:
        return None, index
    element = int(view.offset) + sum(i * int(s) for i, s in zip(index, view.strides, strict=True))
    whole = take(tensors.parameters[given.name], given.rank)
    return given, unravel(element, tuple(int(d) for d in whole.shape))


def unravel(element: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of an element that is numbered in row-major order."""
    index: list[int] = []
    for dim in range(len(shape)):
        below = math.prod(shape[dim + 1 :])
        index.append(element // below)
        element %= below
    return tuple(index)
