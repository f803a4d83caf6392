"""Patterns and externs: parameters, presets and body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.resolve.expect import expect
from commlang.resolve.expressions import infer
from commlang.resolve.handles import collect_handles
from commlang.resolve.kinds import INT, UNKNOWN, Kind, Type
from commlang.resolve.scope import Binding, Scope
from commlang.resolve.shapes import check_shape, param_type
from commlang.resolve.signature import implicit_sizes
from commlang.resolve.statements import block
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from commlang.resolve.context import Context
    from commlang.source import Span

_WANT = {Kind.INT: "int", Kind.BOOL: "bool", Kind.OP: "op", Kind.TABLE: "table"}


def check_definition(node: ast.Pattern | ast.Extern, ctx: Context) -> None:
    """Check a pattern or extern."""
    ctx.handles = {}
    ctx.bound = {n.id: n.span for n in walk(node) if isinstance(n, ast.Target)}
    if isinstance(node, ast.Pattern):
        collect_handles(node, ctx)
    scope = _parameters(node, ctx)
    _presets(node, ctx, scope)
    block(node.body, ctx, scope)


def _parameters(node: ast.Pattern | ast.Extern, ctx: Context) -> Scope:
    """Bind the parameters, and check shapes and defaults, which see all of them."""
    scope = Scope()
    names = frozenset(p.target.id for p in node.params)
    for param in node.params:
        type_ = param_type(param.type, names, ctx) if param.type else UNKNOWN
        ctx.bind(scope, param.target.id, param.target.span, type_, "a parameter")
        _mode(node, param, type_, ctx)
    for name, span in implicit_sizes(node.params).items():
        scope.names[name] = Binding(INT, span, "a size")
    for param in node.params:
        if param.type is not None:
            check_shape(param.type, ctx, scope)
    for param in node.params:
        if param.default is not None:
            _default(param, param.default, ctx, scope)
    return scope


def _default(param: ast.Param, default: ast.Expr, ctx: Context, scope: Scope) -> None:
    given = infer(default, ctx, scope)
    name = param.target.id
    binding = scope.names[name]
    if param.type is None:
        if binding.type == UNKNOWN and binding.span == param.target.span:
            scope.names[name] = Binding(given, binding.span, binding.word)
    elif binding.type.kind is Kind.TENSOR:
        message = f"tensor `{name}` cannot have a default"
        hint = "the caller gives it, or commlang allocates it"
        ctx.report("CL103", default.span, message, hint)
    elif binding.type.kind in _WANT:
        expect(ctx, default, given, _WANT[binding.type.kind], f"the default of `{name}`")


def _mode(node: ast.Pattern | ast.Extern, param: ast.Param, type_: Type, ctx: Context) -> None:
    """Externs say what they do with their tensors; of patterns it is known."""
    name = param.target.id
    is_tensor = type_.kind is Kind.TENSOR
    if param.mode is None:
        if isinstance(node, ast.Extern) and is_tensor:
            message = f"an extern must say what it does with tensor `{name}`"
            hint = f"write `{name}: read …`, `{name}: write …` or `{name}: update …`"
            ctx.report("CL104", param.span, message, hint)
    elif isinstance(node, ast.Pattern):
        message = f"`{param.mode}` belongs to externs: what a pattern does with `{name}` is known"
        ctx.report("CL104", param.span, message, f"drop `{param.mode}`")
    elif not is_tensor and type_ != UNKNOWN:
        ctx.report("CL103", param.span, f"`{param.mode}` needs a tensor, not {type_}")


def _presets(node: ast.Pattern | ast.Extern, ctx: Context, scope: Scope) -> None:
    first: dict[str, Span] = {}
    for statement in node.body:
        if isinstance(statement, ast.Preset):
            before = first.setdefault(statement.name, statement.span)
            if before != statement.span:
                message = f"there is already a preset `{statement.name}`"
                other = (before, "defined here first")
                ctx.report("CL105", statement.span, message, other=other)
            _preset(statement, ctx, scope)


def _preset(node: ast.Preset, ctx: Context, scope: Scope) -> None:
    given: dict[str, Span] = {}
    for keyword in node.values:
        type_ = infer(keyword.value, ctx, scope)
        before = given.setdefault(keyword.name, keyword.span)
        known = [n for n, b in scope.names.items() if b.type.kind is not Kind.TENSOR] + ["world"]
        if before != keyword.span:
            message = f"preset `{node.name}` sets `{keyword.name}` twice"
            ctx.report("CL102", keyword.span, message, other=(before, "set here first"))
        elif keyword.name not in known and keyword.name not in scope.names:
            message = f"preset `{node.name}` sets `{keyword.name}`, which is no parameter"
            hint = ctx.suggest(keyword.name, known) or f"it can set {', '.join(known)}"
            ctx.report("CL102", keyword.span, message, hint)
        else:
            _preset_value(keyword, type_, ctx, scope)


def _preset_value(keyword: ast.Keyword, type_: Type, ctx: Context, scope: Scope) -> None:
    binding = scope.names.get(keyword.name)
    if binding is None:
        expect(ctx, keyword.value, type_, "int", "`world`")
    elif binding.type.kind is Kind.TENSOR:
        message = f"a preset sets sizes and numbers, not tensor `{keyword.name}`"
        ctx.report("CL103", keyword.span, message)
    else:
        want = "table" if binding.type.kind is Kind.TABLE else "plain"
        expect(ctx, keyword.value, type_, want, f"`{keyword.name}`")
