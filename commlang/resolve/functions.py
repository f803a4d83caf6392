"""The functions of the expression language: what they take and what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.operations import CONTRACT_FUNCTIONS, FUNCTIONS
from commlang.resolve.expect import expect
from commlang.resolve.kinds import (
    BOOL,
    INT,
    NUMERIC,
    OP,
    TENSOR,
    UNKNOWN,
    Kind,
    Type,
    element,
    join,
    sequence,
)
from commlang.resolve.operators import contents
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.resolve.context import Context
    from commlang.resolve.scope import Scope

Types = dict[ast.Expr, Type]

_INTS = ("range", "share", "log2", "log2ceil", "abs")
_ITERABLES = ("reversed", "zip", "all", "any")
_CONTENTS = ("abs", "min", "max")


def builtin(node: ast.Call, name: str, types: Types, ctx: Context, scope: Scope) -> Type:
    """The type of a call of a built-in function; reports wrong arguments."""
    least, most = FUNCTIONS.get(name) or CONTRACT_FUNCTIONS[name]
    if node.keywords:
        message = f"`{name}` takes no keyword arguments"
        ctx.report("CL102", node.keywords[0].span, message)
        return UNKNOWN
    if not least <= len(node.args) <= most:
        allowed = str(least) if least == most else f"{least} to {most}"
        message = f"`{name}` takes {allowed} argument{'s' * (allowed != '1')}"
        ctx.report("CL102", node.span, f"{message}, not {len(node.args)}")
        return UNKNOWN
    if name == "sum" or (name in ("min", "max") and len(node.args) == 1):
        return reduction(node, f"`{name}`", types, ctx, scope)
    for i, argument in enumerate(node.args):
        _argument(argument, i, name, types[argument], ctx, scope)
    return _result(name, [types[argument] for argument in node.args])


def reduction(node: ast.Call, what: str, types: Types, ctx: Context, scope: Scope) -> Type:
    """The type of reducing the values of one list or generator, as `sum` and `op` do."""
    if node.keywords or len(node.args) != 1:
        ctx.report("CL102", node.span, f"{what} takes one list or `value for name in …`")
        return UNKNOWN
    argument = node.args[0]
    values = types[argument]
    if Kind.TENSOR in (values.kind, element(values).kind):
        return contents(argument, values, what, ctx, scope)
    expect(ctx, argument, values, "iterable", what)
    each = element(values)
    return INT if each.kind is Kind.BOOL else each


def _argument(node: ast.Expr, i: int, name: str, type_: Type, ctx: Context, scope: Scope) -> None:
    what = f"`{name}`"
    if type_.kind is Kind.TENSOR and name in _CONTENTS:
        contents(node, type_, what, ctx, scope)
    elif name in _ITERABLES or (name == "enumerate" and i == 0):
        expect(ctx, node, type_, "iterable", what)
    elif name == "fold" and i == 0:
        _folding(node, type_, ctx)
    elif name == "fold" and i == 2:
        expect(ctx, node, type_, "iterable", what)
    elif name == "len":
        expect(ctx, node, type_, "counted", what)
    elif name in _INTS or name == "enumerate":
        expect(ctx, node, type_, "int", what)
    elif name in ("min", "max", "premul_sum"):
        expect(ctx, node, type_, "arithmetic", what)


def _folding(node: ast.Expr, function: Type, ctx: Context) -> None:
    if function.kind is not Kind.FUNCTION or len(function.names) != 2:
        message = "`fold` needs a `let` function of two values: what there is so far, and an item"
        ctx.report("CL103", node.span, message, "`let f(so_far, item) = …`, then `fold(f, …, …)`")


def _result(name: str, types: list[Type]) -> Type:
    match name:
        case "share" | "log2" | "log2ceil" | "len":
            return INT
        case "range":
            return sequence(INT)
        case "reversed":
            return sequence(element(types[0]))
        case "all" | "any":
            return BOOL
        case "premul_sum":
            return OP
        case "concat":
            return TENSOR
        case "fold":
            return types[0].items[0] if types[0].kind is Kind.FUNCTION else UNKNOWN
        case "enumerate":
            return sequence(Type(Kind.TUPLE, (INT, element(types[0]))))
        case "zip":
            return sequence(Type(Kind.TUPLE, tuple(map(element, types))))
        case "abs" | "old":
            return types[0]
        case _:
            return _least(types)


def _least(types: list[Type]) -> Type:
    """The type of `min(a, b, …)`."""
    if any(type_.kind is Kind.TENSOR for type_ in types):
        return UNKNOWN
    known = all(type_.kind in NUMERIC for type_ in types)
    return join(*types) if known else UNKNOWN
