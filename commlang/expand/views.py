"""Indexing, slicing and methods of tensor views and sequences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from commlang.expand import arrays
from commlang.expand.values import Chunks, Sliced, Value, View, row_major
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.expand.arrays import Bool, Int


class ViewFault(Exception):
    """An index or shape that the value does not have; `lanes` marks where."""

    def __init__(self, message: str, lanes: Bool = True, hint: str | None = None) -> None:
        super().__init__(message)
        self.lanes = lanes
        self.hint = hint


if TYPE_CHECKING:
    Sub = Int | tuple[Int | None, Int | None, Int | None]


def _first(value: Int, lanes: Bool) -> Int:
    """The value at the first marked lane, for a message."""
    return arrays.lane(value, arrays.first_lane(lanes))


def check_index(i: Int, n: Int, what: str) -> None:
    """Refuse an index outside 0 <= i < n."""
    bad = (i < 0) | (i >= n)
    if not arrays.anywhere(bad):
        return
    index, length = _first(i, bad), _first(n, bad)
    hint = "an index that is computed does not wrap round; write `% length` for that"
    message = f"index {index} is out of range for {what} of length {length}"
    raise ViewFault(message, bad, hint if index < 0 else None)


def check_bounds(low: Int, high: Int, n: Int, what: str) -> None:
    """Refuse a slice outside 0 <= low <= high <= n."""
    bad = (low < 0) | (low > high) | (high > n)
    if not arrays.anywhere(bad):
        return
    low, high, length = _first(low, bad), _first(high, bad), _first(n, bad)
    raise ViewFault(f"slice {low}:{high} is out of range for {what} of length {length}", bad)


def slice_bounds(sub: tuple[Int | None, Int | None, Int | None], n: Int, what: str) -> Any:
    """The start, step and length of a slice of n items."""
    low, high, step = sub
    start: Int = 0 if low is None else low
    end: Int = n if high is None else high
    check_bounds(start, end, n, what)
    if step is None:
        return start, 1, end - start
    if arrays.anywhere(step < 1):
        raise ViewFault("the step of a slice must be 1 or more", step < 1)
    return start, step, arrays.floor_divide(arrays.add(end - start, step - 1), step)


def index_view(view: View, subs: list[Sub]) -> View:
    """`view[sub, …]`: an int drops its dim, a slice keeps it."""
    if len(subs) > len(view.shape):
        many = f"{len(subs)} indices for a tensor of {len(view.shape)} dims"
        raise ViewFault(many)
    offset = view.offset
    shape: list[Int] = []
    strides: list[Int] = []
    for dim, sub in enumerate(subs):
        n, stride = view.shape[dim], view.strides[dim]
        what = f"dim {dim}"
        if isinstance(sub, tuple):
            start, step, length = slice_bounds(sub, n, what)
            offset = offset + start * stride
            shape.append(length)
            strides.append(stride * step)
        else:
            check_index(sub, n, what)
            offset = offset + sub * stride
    shape += view.shape[len(subs) :]
    strides += view.strides[len(subs) :]
    return replace(view, offset=offset, shape=tuple(shape), strides=tuple(strides))


def index_sequence(sequence: Any, sub: Sub) -> Value:
    """`sequence[sub]`: an item, or a sequence of some of the items."""
    n = sequence.length
    if not isinstance(sub, tuple):
        check_index(sub, n, "a list")
        return sequence.at(sub)
    start, step, length = slice_bounds(sub, n, "a list")
    if isinstance(sequence, Chunks) and isinstance(step, int) and step == 1:
        return sequence.run(start, start + length)
    return Sliced(sequence, start, step, length)


def chunks(view: View, k: Int, dim: int) -> Chunks:
    """`view.chunks(k, dim)`."""
    if not 0 <= dim < len(view.shape):
        raise ViewFault(f"dim {dim} of a tensor of {len(view.shape)} dims")
    bad = k < 1
    if arrays.anywhere(bad):
        raise ViewFault(f"{_first(k, bad)} chunks; there must be at least 1", bad)
    return Chunks(view, k, dim)


def reshape(view: View, shape: tuple[Int, ...]) -> View:
    """The same elements in another shape; the view must be contiguous."""
    if not arrays.everywhere(view.contiguous()):
        raise ViewFault("only a contiguous view can be reshaped", hint="copy it to a temp first")
    numel: Int = 1
    for size in shape:
        numel = arrays.multiply(numel, size)
    bad = numel != view.numel
    if arrays.anywhere(bad):
        have, want = _first(view.numel, bad), _first(numel, bad)
        raise ViewFault(f"{have} elements cannot be reshaped to {want}", bad)
    return replace(view, shape=shape, strides=row_major(shape))


def transpose(view: View, a: int, b: int) -> View:
    """The view with two dims exchanged."""
    dims = range(len(view.shape))
    if a not in dims or b not in dims:
        raise ViewFault(f"dims {a} and {b} of a tensor of {len(view.shape)} dims")
    order = [b if d == a else a if d == b else d for d in dims]
    shape = tuple(view.shape[d] for d in order)
    return replace(view, shape=shape, strides=tuple(view.strides[d] for d in order))


def same_shape(a: View, b: View) -> Bool:
    """Whether two views have one shape, per lane."""
    if len(a.shape) != len(b.shape):
        return False
    result: Bool = True
    for x, y in zip(a.shape, b.shape, strict=True):
        result = arrays.logical_and(result, x == y)
    return result


def shape_text(view: View, lanes: Bool = True) -> str:
    """The shape at the first marked lane, as `[4, 8]`."""
    return f"[{', '.join(str(_first(d, lanes)) for d in view.shape)}]"


def wrap(sub: Any, node: ast.Expr | ast.Slice, shape: tuple[Int, ...], dim: int) -> Any:
    """Count a literal negative index from the end; a computed one stays and is refused."""
    if dim >= len(shape):
        return sub
    if isinstance(node, ast.Slice):
        low, high, step = sub
        length = shape[dim]
        return _from_end(low, node.low, length), _from_end(high, node.high, length), step
    return _from_end(sub, node, shape[dim])


def _from_end(value: Any, node: ast.Expr | None, length: Int) -> Any:
    if not (
        isinstance(node, ast.Unary) and node.op == "-" and isinstance(node.operand, ast.Number)
    ):
        return value
    before = length + value < 0
    if arrays.anywhere(before):
        message = f"index {value} is out of range for length {_first(length, before)}"
        raise ViewFault(message, before)
    return length + value
