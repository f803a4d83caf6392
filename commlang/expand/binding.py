"""Arguments to parameters: types are checked, shapes bind the integers they name."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from commlang.diagnostics import did_you_mean
from commlang.dtypes import DTYPES, DType
from commlang.expand import arrays
from commlang.expand.arrays import is_bool, is_int
from commlang.expand.fault import fail
from commlang.expand.values import (
    SEQUENCES,
    Op,
    Ragged,
    Range,
    Table,
    Value,
    View,
    describe,
    is_uniform,
    take,
)
from commlang.records import record

if TYPE_CHECKING:
    from commlang.expand.arrays import Array, Int
    from commlang.expand.expressions import Expressions
    from commlang.expand.scope import Scope
    from commlang.syntax import ast

SCALARS = ("int", "bool", "op")
MAX_CELLS = 1 << 24
"""Most cells of a parameter table: 4,096 ranks by 4,096."""


class _TooLargeError(Exception):
    """A table with more than MAX_CELLS cells."""


@record
class Argument:
    """A value for a parameter and where it was given."""

    value: Value
    node: ast.Node


def is_tensor(param: ast.Param) -> bool:
    """Whether a parameter is a tensor (`int[n, n]` is a table, `bool` a scalar)."""
    kind = param.type
    if kind is None or kind.name == "int":
        return False
    return kind.shape is not None or kind.name not in SCALARS


def handed_on(params: tuple[ast.Param, ...]) -> list[ast.Param]:
    """What of an extern's parameters its callable is given: all but the dtypes of its tensors."""
    dtypes = {p.type.name for p in params if is_tensor(p) and p.type is not None}
    return [p for p in params if p.target.id not in dtypes]


def collect(
    name: str,
    params: tuple[ast.Param, ...],
    node: ast.Call,
    evaluator: Expressions,
    scope: Scope,
) -> dict[str, Argument]:
    """The arguments of a call by parameter name (`group=` left out)."""
    given: dict[str, Argument] = {}
    names = [p.target.id for p in params]
    if len(node.args) > len(names):
        fail(scope, node, "CL102", f"`{name}` takes {len(names)} arguments, not {len(node.args)}")
    for target, arg in zip(names, node.args, strict=False):
        given[target] = Argument(evaluator.eval(arg, scope), arg)
    for keyword in node.keywords:
        if keyword.name == "group" and "group" not in names:
            continue
        if keyword.name not in names:
            message = f"`{name}` has no parameter `{keyword.name}`"
            fail(scope, keyword, "CL102", message, hint=did_you_mean(keyword.name, names))
        if keyword.name in given:
            fail(scope, keyword, "CL102", f"`{keyword.name}` is given twice")
        given[keyword.name] = Argument(evaluator.eval(keyword.value, scope), keyword.value)
    return given


def bind(
    params: tuple[ast.Param, ...],
    given: dict[str, Argument],
    evaluator: Expressions,
    inner: Scope,
    caller: Scope,
) -> None:
    """Bind parameters in the scope of a new frame; tensors that were not given stay unbound.

    Given scalars come first, then the shapes of given tensors bind what they name, then defaults
    apply in order, and at last every given shape is checked against the declared one.
    """
    for param in params:
        argument = given.get(param.target.id)
        if argument is not None and not is_tensor(param):
            inner.bind(param.target.id, _scalar(param, argument, caller, inner))
    tensors = [p for p in params if is_tensor(p) and p.target.id in given]
    names = {p.target.id: p for p in params}
    for param in tensors:
        _bind_shape(param, given[param.target.id], names, inner, caller)
    for param in params:
        name = param.target.id
        if is_tensor(param) or name in inner.vars:
            continue
        if param.default is None:
            if _bound_by_shape(name, params):
                continue
            missing(param, caller if caller.frame is not inner.frame else inner)
        given[name] = Argument(evaluator.eval(param.default, inner), param.default)
        inner.bind(name, _scalar(param, given[name], inner, inner))
    for param in tensors:
        inner.bind(param.target.id, given[param.target.id].value)
    for param in params:
        argument = given.get(param.target.id)
        if argument is not None and param.type is not None:
            scope = inner if argument.node is param.default else caller
            _check_shape(param, argument.node, evaluator, inner, scope)


def missing(param: ast.Param, scope: Scope) -> NoReturn:
    """Refuse a parameter without a value."""
    name = param.target.id
    hint = f"pass `{name}`, give it a default, or `--set {name}=…` on the command line"
    fail(scope, param, "CL121", f"parameter `{name}` has no value", hint=hint)


def _bound_by_shape(name: str, params: tuple[ast.Param, ...]) -> bool:
    return any(
        p.type.name == name or any(getattr(dim, "id", None) == name for dim in p.type.shape or ())
        for p in params
        if is_tensor(p) and p.type
    )


def _scalar(param: ast.Param, argument: Argument, scope: Scope, inner: Scope) -> Value:
    value, kind = argument.value, param.type
    wanted = "table" if kind and kind.shape is not None else kind.name if kind else ""
    fits = {
        "": is_int(value)
        or is_bool(value)
        or isinstance(value, Op | Fraction | str | Table | DType),
        "int": is_int(value),
        "bool": is_bool(value),
        "op": isinstance(value, Op),
        "table": _is_table(value),
    }
    if not fits[wanted]:
        message = f"parameter `{param.target.id}` is {_article(wanted)}, not {describe(value)}"
        fail(scope, argument.node, "CL103", message)
    return _table(param, argument, scope, inner) if wanted == "table" else value


def _article(kind: str) -> str:
    return {"": "a number, a bool, an op or a dtype", "int": "an int", "op": "a reduce op"}.get(
        kind, f"a {kind}"
    )


def _is_table(value: Value) -> bool:
    return isinstance(value, SEQUENCES)


def _table(param: ast.Param, argument: Argument, scope: Scope, inner: Scope) -> Table:
    """A table from a table or from nested lists; its shape binds the sizes that it names."""
    value = argument.value
    if isinstance(value, Table):
        array = value.array[value.prefix] if value.prefix else value.array
    else:
        array = np.asarray(_nested(param, argument, value, scope))
    assert param.type is not None
    assert param.type.shape is not None
    if array.dtype != np.int64 or array.ndim != len(param.type.shape):
        dims = len(param.type.shape)
        message = f"`{param.target.id}` is a table of ints with {dims} dims"
        fail(scope, argument.node, "CL103", message)
    for dim, length in zip(param.type.shape, array.shape, strict=True):
        bare = getattr(dim, "id", None)
        if bare is not None and bare not in inner.vars:
            inner.bind(bare, length)
    return Table(array)


def _nested(param: ast.Param, argument: Argument, value: Value, scope: Scope) -> Any:
    """The items of nested lists, which must be ints: an int, a list of rows, or an array."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, SEQUENCES) and isinstance(value.length, int):
        try:
            cells = _cells(value, 1) if is_uniform(value) else None
        except _TooLargeError:
            message = f"table `{param.target.id}` has more than {MAX_CELLS:,} cells"
            fail(scope, argument.node, "CL120", message)
        if cells is not None:
            return cells[0]
        rows = [_nested(param, argument, value.at(i), scope) for i in range(value.length)]
        if len({np.shape(row) for row in rows}) <= 1:
            return rows
    message = f"table `{param.target.id}` needs rows of ints, the same on every rank"
    fail(scope, argument.node, "CL103", message)


def _cells(value: Value, lanes: int) -> Array | None:
    """The items of comprehensions as an array of (lane, item, …), all lanes and rows at once.

    None for other lists, and where the rows differ in length: they are gone through one by one.
    """
    if is_int(value):
        return arrays.broadcast(value, lanes)
    if not isinstance(value, Ragged | Range):
        return None
    length = arrays.squeeze(arrays.broadcast(value.length, lanes))
    if not isinstance(length, int) or length == 0:
        return None
    if lanes * length > MAX_CELLS:
        raise _TooLargeError
    owner, place = np.repeat(np.arange(lanes), length), np.tile(np.arange(length), lanes)
    cells = _cells(take(value, owner).at(place), len(owner))
    return None if cells is None else cells.reshape(lanes, length, *cells.shape[1:])


def _bind_shape(
    param: ast.Param,
    argument: Argument,
    names: dict[str, ast.Param],
    inner: Scope,
    caller: Scope,
) -> None:
    value = argument.value
    name = param.target.id
    if not isinstance(value, View):
        message = f"parameter `{name}` is a tensor, not {describe(value)}"
        fail(caller, argument.node, "CL103", message)
    assert param.type is not None
    if param.type.name in names and param.type.name not in inner.vars:
        inner.bind(param.type.name, value.dtype)
    dtype, shape = declared(param, inner)
    if value.dtype != dtype:
        message = f"parameter `{name}` is {dtype}, the argument {value.dtype}"
        fail(caller, argument.node, "CL113", message)
    if len(value.shape) != len(shape):
        message = f"parameter `{name}` has {len(shape)} dims, the argument {len(value.shape)}"
        fail(caller, argument.node, "CL112", message)
    for dim, length in zip(shape, value.shape, strict=True):
        bare = getattr(dim, "id", None)
        if bare is None or bare in inner.vars:
            continue
        if bare not in names or not is_tensor(names[bare]):
            inner.bind(bare, length)


def _check_shape(
    param: ast.Param, node: ast.Node, evaluator: Expressions, inner: Scope, caller: Scope
) -> None:
    """Refuse a tensor or a table whose shape is not the declared one."""
    value = inner.vars[param.target.id]
    if isinstance(value, Table):
        value = value.array
    dims = param.type.shape or () if param.type else ()
    for number, dim in enumerate(dims):
        length: Int = value.shape[number]
        wanted = evaluator.integer(dim, inner, "a dim")
        differs = wanted != length
        if arrays.anywhere(differs):
            lane = arrays.first_lane(differs)
            want, have = arrays.lane(wanted, lane), arrays.lane(length, lane)
            message = f"dim {number} of `{param.target.id}` is {want}, the argument's is {have}"
            fail(caller, node, "CL112", message, lanes=differs)


def declared(param: ast.Param, scope: Scope) -> tuple[DType, tuple[ast.Expr, ...]]:
    """The dtype and the shape expressions of a tensor parameter."""
    kind = param.type
    assert kind is not None
    return dtype_of(kind, scope), kind.shape or ()


def dtype_of(kind: ast.TypeRef, scope: Scope) -> DType:
    """The dtype that a type names."""
    try:
        dtype = scope.lookup(kind.name)
    except KeyError:
        dtype = DTYPES.get(kind.name)
    if not isinstance(dtype, DType):
        hint = did_you_mean(kind.name, DTYPES)
        fail(scope, kind, "CL103", f"`{kind.name}` is no dtype", hint=hint)
    return dtype
