"""The values of the expression language, each aligned with the lanes of a scope.

A lane is one rank in one iteration of the loops around it. A value is uniform (a plain Python
value: the same on all lanes) or holds arrays with one entry per lane. `take` moves a value from
the lanes of one scope to those of another.
"""

from __future__ import annotations

from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from commlang.dtypes import DType
from commlang.expand import arrays
from commlang.records import record

if TYPE_CHECKING:
    from commlang.expand.arrays import Array, Int
    from commlang.expand.groups import GroupTable
    from commlang.expand.scope import Scope
    from commlang.operations import ReduceOp
    from commlang.resolve.modules import Definition
    from commlang.syntax import ast

Value: TypeAlias = Any
"""int, bool, Fraction, str, an int64 or bool array over lanes, or one of the classes below."""


@record
class Op:
    """A reduce operation; `factor` belongs to premul_sum."""

    op: ReduceOp
    factor: Fraction | None = None


@record
class View:
    """Elements of a buffer: `shape` and `strides` count elements, as `offset` does."""

    buffer: Int
    offset: Int
    shape: tuple[Int, ...]
    strides: tuple[Int, ...]
    dtype: DType

    @property
    def numel(self) -> Int:
        result: Int = 1
        for dim in self.shape:
            result = arrays.multiply(result, dim)
        return result

    def contiguous(self) -> arrays.Bool:
        """Whether the elements lie one after the other, per lane."""
        result: arrays.Bool = True
        expected: Int = 1
        for dim, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if stride is not expected:
                same = (stride == expected) | (dim <= 1)
                result = same if result is True else result & same
            expected = dim if isinstance(expected, int) and expected == 1 else expected * dim
        return True if result is True else result | (self.numel == 0)


def row_major(shape: tuple[Int, ...]) -> tuple[Int, ...]:
    """The strides of a contiguous tensor."""
    strides: list[Int] = []
    stride: Int = 1
    for dim in reversed(shape):
        strides.append(stride)
        stride = arrays.multiply(stride, dim)
    return tuple(reversed(strides))


@record
class Group:
    """A group of ranks, as the number of its entry in the table of groups."""

    gid: Int
    table: GroupTable
    frame: Int
    """The group in whose ranks the members are told: that of the pattern."""

    @property
    def length(self) -> Int:
        return self.table.size(self.gid)

    def at(self, i: Int) -> Int:
        return self.table.position(self.frame, self.table.member(self.gid, i))


@record
class Range:
    start: Int
    step: Int
    length: Int

    def at(self, i: Int) -> Int:
        if isinstance(self.step, int) and self.step == 1:
            return i if isinstance(self.start, int) and self.start == 0 else self.start + i
        return self.start + self.step * i


@record
class Items:
    """A list written out: the same number of items on all lanes."""

    items: tuple[Value, ...]
    weight: int = field(init=False, compare=False, repr=False)
    """Items in all, those of lists inside lists counted as often as they stand there."""

    def __post_init__(self) -> None:
        weight = sum(i.weight if isinstance(i, Items) else 1 for i in self.items)
        object.__setattr__(self, "weight", weight)

    @property
    def length(self) -> Int:
        return len(self.items)

    def at(self, i: Int) -> Value:
        return self.items[i] if isinstance(i, int) else choose(self.items, i)


@record
class Ragged:
    """A comprehension's items: `flat` over its own lanes, of which `index` lists those kept.

    Lane l holds the items `index[first[l] : first[l] + length[l]]`.
    """

    flat: Value
    index: Array
    first: Int
    length: Int

    def at(self, i: Int) -> Value:
        at = self.first + i
        if isinstance(at, np.ndarray):  # a lane without items may ask for one that is masked
            at = np.minimum(at, len(self.index) - 1)
        return take(self.flat, _take_int(self.index, at))


@record
class Chunks:
    """`view.chunks(k, dim)`: k views whose lengths along `dim` differ by at most one."""

    view: View
    k: Int
    dim: int

    @property
    def length(self) -> Int:
        return self.k

    def start(self, i: Int) -> Int:
        """The first element of chunk i along the dim (that of chunk k is the end)."""
        n = self.view.shape[self.dim]
        rest = arrays.modulo(n, self.k)
        base = arrays.floor_divide(n, self.k) * i
        if isinstance(rest, int) and rest == 0:
            return base
        return base + arrays.minimum(i, rest)

    def at(self, i: Int) -> View:
        return self.run(i, i + 1)

    def run(self, low: Int, high: Int) -> View:
        """The view of chunks low to high."""
        start = self.start(low)
        length = self.start(high) - start
        offset = self.view.offset + start * self.view.strides[self.dim]
        shape = (*self.view.shape[: self.dim], length, *self.view.shape[self.dim + 1 :])
        return replace(self.view, offset=offset, shape=shape)


@record
class Sliced:
    """Every step-th item of another sequence, from start; a step of -1 walks back."""

    base: Any
    start: Int
    step: Int
    length: Int

    def at(self, i: Int) -> Value:
        return self.base.at(self.start + self.step * i)


@record
class Zipped:
    """Sequences side by side; `enumerate` is one with a Range."""

    parts: tuple[Any, ...]
    length: Int

    def at(self, i: Int) -> tuple[Value, ...]:
        return tuple(part.at(i) for part in self.parts)


@record
class Table:
    """A parameter table, indexed so far by `prefix`."""

    array: Array
    prefix: tuple[Int, ...] = ()

    @property
    def length(self) -> Int:
        return self.array.shape[len(self.prefix)]

    def at(self, i: Int) -> Value:
        prefix = (*self.prefix, i)
        if len(prefix) < self.array.ndim:
            return Table(self.array, prefix)
        cell = self.array[prefix]
        return cell if arrays.is_array(cell) else int(cell)


@record
class Chosen:
    """On lane l the sequence `options[which[l]]`."""

    options: tuple[Any, ...]
    which: Array

    @property
    def length(self) -> Int:
        return choose(tuple(option.length for option in self.options), self.which)

    def at(self, i: Int) -> Value:
        values = [item(o, i) if arrays.top(o.length) else None for o in self.options]
        some = next((v for v in values if v is not None), None)
        return choose(tuple(some if v is None else v for v in values), self.which)


SEQUENCES = (Group, Range, Items, Ragged, Chunks, Sliced, Zipped, Table, Chosen)


def item(sequence: Any, i: Int) -> Value:
    """Item i where a lane has one, else that lane's last (callers mask it)."""
    length = sequence.length
    if isinstance(length, int) and isinstance(i, int) and i < length:
        return sequence.at(i)
    return sequence.at(np.minimum(i, np.maximum(length - 1, 0)))


@record
class Function:
    """A `let` function with the scope that it was defined in."""

    node: ast.LetFunction
    scope: Scope


@record
class Callable:
    """A pattern or an extern."""

    definition: Definition


def _take_int(value: Int, index: Int) -> Int:
    if not isinstance(value, np.ndarray):
        return value
    return value[index] if isinstance(index, np.ndarray) else value[index].item()


def take(value: Value, index: Int) -> Value:
    """The value on other lanes: lane l of the result is lane `index[l]` of the value.

    With an int for an index, the result is that lane's value, uniform.
    """
    if arrays.is_array(value):
        return _take_int(value, index)
    match value:
        case View(buffer, offset, shape, strides, dtype):
            return View(
                _take_int(buffer, index),
                _take_int(offset, index),
                tuple(_take_int(d, index) for d in shape),
                tuple(_take_int(s, index) for s in strides),
                dtype,
            )
        case Group(gid, table, frame):
            return Group(_take_int(gid, index), table, _take_int(frame, index))
        case Range(start, step, length):
            parts = (_take_int(v, index) for v in (start, step, length))
            return Range(*parts)
        case Items(items):
            return Items(tuple(take(item, index) for item in items))
        case Ragged(flat, order, first, length):
            return Ragged(flat, order, _take_int(first, index), _take_int(length, index))
        case Chunks(view, k, dim):
            return Chunks(take(view, index), _take_int(k, index), dim)
        case Sliced(base, start, step, length):
            parts = (_take_int(v, index) for v in (start, step, length))
            return Sliced(take(base, index), *parts)
        case Zipped(parts, length):
            return Zipped(tuple(take(p, index) for p in parts), _take_int(length, index))
        case Table(array, prefix):
            return Table(array, tuple(_take_int(p, index) for p in prefix))
        case Chosen(options, which):
            if isinstance(index, int):
                return take(options[which[index]], index)
            return Chosen(tuple(take(o, index) for o in options), which[index])
        case _:
            return tuple(take(part, index) for part in value) if is_tuple(value) else value


def is_tuple(value: object) -> TypeGuard[tuple[Value, ...]]:
    """Whether a value is an item made of several, as of `zip`."""
    return isinstance(value, tuple)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a list of Python's, as parameters are given."""
    return isinstance(value, list)


class CannotMix(Exception):
    """Values of different kinds where one value per lane is needed."""


def choose(options: tuple[Value, ...], i: Array) -> Value:
    """Per lane l, `options[i[l]]`; raises CannotMix unless all are of one kind."""
    first = options[0] if options else None
    if all(option is first for option in options):
        return first
    if _one_kind(options):
        return (
            np.choose(i, np.broadcast_arrays(*options, i)[:-1])
            if len(options) <= 32
            else (_pick(options, i))
        )
    if all(arrays.is_number(o) for o in options):
        return choose(tuple(broadcast_real(o, len(i)) for o in options), i)
    if all(isinstance(o, View) for o in options):
        return _choose_view(options, i)
    if all(isinstance(o, Group) for o in options):
        return replace(options[0], gid=choose(tuple(o.gid for o in options), i))
    if all(isinstance(o, SEQUENCES) for o in options):
        return Chosen(options, i)
    if is_tuple(first) and all(is_tuple(o) and len(o) == len(first) for o in options):
        return tuple(choose(parts, i) for parts in zip(*options, strict=True))
    raise CannotMix


def _one_kind(options: tuple[Value, ...]) -> bool:
    """Whether all are ints, all are bools, or all are arrays of float64."""
    kinds = (arrays.is_int, arrays.is_bool, arrays.is_real)
    return any(all(kind(o) for o in options) for kind in kinds)


def broadcast_real(value: Any, lanes: int) -> Any:
    """A number as an array of float64 with one entry per lane."""
    return np.broadcast_to(arrays.real(value), lanes)


def _pick(options: tuple[Any, ...], i: Array) -> Any:
    result = np.empty(len(i), dtype=np.asarray(options[0]).dtype)
    for number, option in enumerate(options):
        chosen = i == number
        result[chosen] = option[chosen] if isinstance(option, np.ndarray) else option
    return result


def _choose_view(views: tuple[View, ...], i: Array) -> View:
    first = views[0]
    if any(len(v.shape) != len(first.shape) or v.dtype != first.dtype for v in views):
        raise CannotMix
    return View(
        choose(tuple(v.buffer for v in views), i),
        choose(tuple(v.offset for v in views), i),
        tuple(choose(dims, i) for dims in zip(*(v.shape for v in views), strict=True)),
        tuple(choose(s, i) for s in zip(*(v.strides for v in views), strict=True)),
        first.dtype,
    )


def describe(value: Value) -> str:
    """What a value is, for messages."""
    if arrays.is_array(value):
        return {"int64": "an int", "float64": "a number"}.get(value.dtype.name, "a bool")
    match value:
        case bool():
            return "a bool"
        case int():
            return "an int"
        case Fraction():
            return "a number"
        case str():
            return "a string"
        case View():
            return f"a {value.dtype} tensor"
        case Op():
            return "a reduce op"
        case DType():
            return "a dtype"
        case Group():
            return "a group"
        case Table():
            return "a table"
        case Function():
            return "a function"
        case Callable(definition):
            return f"the {type(definition.node).__name__.lower()} `{definition.node.name}`"
        case _ if isinstance(value, SEQUENCES):
            return "a list"
        case _:
            return type(value).__name__


def is_uniform(value: Value) -> bool:
    """Whether a value is certainly the same on all lanes."""
    match value:
        case int() | Fraction() | str() | Op() | DType() | Callable():
            return True
        case Group(gid, _, frame):
            return isinstance(gid, int) and isinstance(frame, int)
        case Range(start, step, length):
            return all(isinstance(v, int) for v in (start, step, length))
        case Items(items):
            return all(is_uniform(item) for item in items)
        case Ragged(_, _, first, length):
            return isinstance(first, int) and isinstance(length, int)
        case Sliced(base, start, step, length):
            return is_uniform(base) and all(isinstance(v, int) for v in (start, step, length))
        case Table(_, prefix):
            return all(isinstance(p, int) for p in prefix)
        case _:
            return False
