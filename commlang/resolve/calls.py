"""Calls that have a value: functions, methods, `let` functions and reduce ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.operations import (
    CONTRACT_FUNCTIONS,
    FUNCTIONS,
    GROUP_ATTRIBUTES,
    OPERATIONS,
    REDUCE_OPS,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)
from commlang.resolve.arguments import bind
from commlang.resolve.expect import bare, expect
from commlang.resolve.externs import call_in_contract, extern_named
from commlang.resolve.functions import builtin, reduction
from commlang.resolve.kinds import OP, UNKNOWN, Kind, Type, sequence, tensor
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.resolve.context import Context
    from commlang.resolve.scope import Scope

Types = dict[ast.Expr, Type]


def call(node: ast.Call, base: Type, types: Types, ctx: Context, scope: Scope) -> Type:
    """The type of a call used as a value.

    `types` are those of the arguments; `base` is the type of what a method belongs to, or of a
    called expression that is no plain name.
    """
    func = bare(node.func)
    if isinstance(func, ast.Attr):
        return _method(node, func, base, types, ctx)
    if not isinstance(func, ast.Name):
        return _value(node, base, types, ctx, scope)
    binding = scope.find(func.id)
    if binding is not None:
        return _value(node, binding.type, types, ctx, scope)
    if func.id in FUNCTIONS:
        return builtin(node, func.id, types, ctx, scope)
    if func.id in CONTRACT_FUNCTIONS:
        return _contract_function(node, func, types, ctx, scope)
    extern = extern_named(func, ctx)
    if extern is not None and (scope.contract or scope.deferred):
        return call_in_contract(node, extern, types, ctx)
    if func.id in ctx.module.symbols or func.id in OPERATIONS:
        no_value(func, ctx)
    else:
        unknown(func, ctx, [*scope.visible(), *FUNCTIONS, *CONTRACT_FUNCTIONS])
    return UNKNOWN


def _value(node: ast.Call, base: Type, types: Types, ctx: Context, scope: Scope) -> Type:
    """Call a bound name or an expression."""
    name = ctx.code(node.func)
    if base.kind is Kind.FUNCTION:
        if base.contract and not (scope.contract or scope.deferred):
            _only_contracts(node.func, name, ctx)
        _apply(node, f"`{name}`", base, ctx)
        return base.items[0]
    if base == OP:
        if not scope.contract:
            _only_contracts(node.func, name, ctx)
            return UNKNOWN
        return reduction(node, f"`{name}`", types, ctx, scope)
    if base.kind is not Kind.UNKNOWN:
        ctx.report("CL103", node.func.span, f"`{name}` is {base}, which cannot be called")
    return UNKNOWN


def _apply(node: ast.Call, what: str, function: Type, ctx: Context) -> None:
    if node.keywords:
        message = f"{what} takes no keyword arguments"
        ctx.report("CL102", node.keywords[0].span, message, f"{what} is a `let` function")
    else:
        bind(node, what, function.names, function.names, ctx)


def _contract_function(
    node: ast.Call, func: ast.Name, types: Types, ctx: Context, scope: Scope
) -> Type:
    if not scope.contract and not scope.deferred:
        _only_contracts(func, func.id, ctx)
        return UNKNOWN
    if func.id in REDUCE_OPS:
        return reduction(node, f"`{func.id}`", types, ctx, scope)
    return builtin(node, func.id, types, ctx, scope)


def _only_contracts(node: ast.Expr, name: str, ctx: Context) -> None:
    message = f"`{name}(…)` speaks of tensors' contents, which only `ensure` and `assume` can"
    ctx.report("CL104", node.span, message)


def _method(node: ast.Call, func: ast.Attr, base: Type, types: Types, ctx: Context) -> Type:
    if base.kind not in (Kind.TENSOR, Kind.UNKNOWN):
        if base.kind is Kind.GROUP and func.name in GROUP_ATTRIBUTES:
            _no_method(func, ctx)
        else:
            no_attribute(func, base, ctx)
        return UNKNOWN
    if func.name not in TENSOR_METHODS:
        if base.kind is Kind.TENSOR and func.name in TENSOR_ATTRIBUTES:
            _no_method(func, ctx)
        elif base.kind is Kind.TENSOR:
            no_attribute(func, base, ctx)
        return UNKNOWN
    names, least = TENSOR_METHODS[func.name]
    what = f"`{func.name}`"
    if names or not least:
        bind(node, what, names, names[:least], ctx)
    elif node.keywords or not node.args:
        ctx.report("CL102", node.span, f"{what} takes the new sizes: `{func.name}(rows, columns)`")
    for value, type_ in types.items():
        expect(ctx, value, type_, "int", what)
    return _shape(node, func.name, base)


def _shape(node: ast.Call, method: str, base: Type) -> Type:
    if method == "chunks":
        return sequence(tensor(base.ndim))
    if method == "flatten":
        return tensor(1)
    return tensor(base.ndim if method == "transpose" else len(node.args) or None)


def _no_method(func: ast.Attr, ctx: Context) -> None:
    message = f"`{func.name}` is no method"
    ctx.report("CL103", func.span, message, f"write `{ctx.code(func)}` without parentheses")


def no_attribute(node: ast.Attr, base: Type, ctx: Context) -> None:
    """Report an attribute that no value of this type has."""
    known: tuple[str, ...] = ()
    if base.kind is Kind.GROUP:
        known = GROUP_ATTRIBUTES
    elif base.kind is Kind.TENSOR:
        known = (*TENSOR_ATTRIBUTES, *TENSOR_METHODS)
    hint = ctx.suggest(node.name, known)
    if hint is None and known:
        hint = f"{base} has {', '.join(known)}"
    if base.kind is Kind.SEQUENCE and node.name in ("size", "numel", "shape"):
        hint = f"write `len({ctx.code(node.base)})`"
    ctx.report("CL103", node.span, f"{base} has no attribute `{node.name}`", hint)


def no_value(node: ast.Name, ctx: Context) -> None:
    """Report an operation, pattern or extern used as a value."""
    definition = ctx.module.symbols.get(node.id)
    word = "operation"
    if definition is not None:
        word = "pattern" if isinstance(definition.node, ast.Pattern) else "extern"
    message = f"`{node.id}` is {'an' if word[0] in 'eo' else 'a'} {word}, which has no value"
    hint = "call it on a line of its own; its results are in its tensor arguments"
    ctx.report("CL104", node.span, message, hint)


def unknown(node: ast.Name, ctx: Context, known: Iterable[str]) -> None:
    """Report a name that nothing visible here binds."""
    if node.id in ctx.handles:
        hint = f"`{node.id}` is a handle: only `wait({node.id})` can name it"
    elif node.id in ctx.bound:
        line = ctx.line(ctx.bound[node.id])
        hint = (
            f"`{node.id}` is bound on line {line}, but not visible here: a name is visible "
            "after its statement, inside its block"
        )
    else:
        hint = ctx.suggest(node.id, known)
    ctx.report("CL101", node.span, f"`{node.id}` is not defined", hint)
