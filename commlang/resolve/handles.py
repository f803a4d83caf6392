"""Handles: names of their own for operations under way, with any fixed number of indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.resolve.expect import bare, expect
from commlang.resolve.expressions import infer
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from commlang.resolve.context import Context
    from commlang.resolve.scope import Scope


def collect_handles(node: ast.Pattern, ctx: Context) -> None:
    """Note every handle that the pattern binds: a `wait` may stand above its `async`."""
    ctx.handles = {}
    for statement in walk(node):
        if isinstance(statement, ast.Async):
            name = _name(statement.handle)
            if name is not None:
                ctx.handles.setdefault(name.id, (_indices(statement.handle), name.span))


def check_handle(node: ast.Expr, ctx: Context, scope: Scope) -> None:
    """Check the left side of `handle = async …`."""
    name = _checked(node, ctx, scope)
    if name is not None and not ctx.reserved(name.id, name.span):
        _same_count(node, name, ctx)


def check_wait(node: ast.Expr, ctx: Context, scope: Scope) -> None:
    """Check the argument of `wait`; without an index it joins every one of that name."""
    name = _checked(node, ctx, scope)
    if name is None:
        return
    if name.id in ctx.handles:
        if _indices(node):
            _same_count(node, name, ctx)
        return
    binding = scope.find(name.id)
    hint = ctx.suggest(name.id, ctx.handles)
    if binding is not None:
        hint = f"`{name.id}` is {binding.word}; a handle is bound by `{name.id} = async …`"
    ctx.report("CL104", name.span, f"no `{name.id} = async …` in this pattern", hint)


def _same_count(node: ast.Expr, name: ast.Name, ctx: Context) -> None:
    count, span = ctx.handles[name.id]
    if _indices(node) != count:
        here = _indices(node) or "none"
        message = f"handle `{name.id}` has {_words(count)} elsewhere, here {here}"
        ctx.report("CL103", node.span, message, other=(span, "bound here"))


def _words(count: int) -> str:
    return f"{count or 'no'} {'index' if count == 1 else 'indices'}"


def _name(node: ast.Expr) -> ast.Name | None:
    node = bare(node)
    base = node.base if isinstance(node, ast.Index) else node
    return base if isinstance(base, ast.Name) else None


def _indices(node: ast.Expr) -> int:
    node = bare(node)
    return len(node.subs) if isinstance(node, ast.Index) else 0


def _checked(node: ast.Expr, ctx: Context, scope: Scope) -> ast.Name | None:
    """The handle's name if it is written as one; its indices are checked too."""
    name = _name(node)
    inner = bare(node)
    subs = inner.subs if isinstance(inner, ast.Index) else ()
    indices = [sub for sub in subs if not isinstance(sub, ast.Slice)]
    if name is None or len(indices) < len(subs):
        message = f"`{ctx.code(node)}` is no handle"
        ctx.report("CL104", node.span, message, "a handle is `work`, `work[i]` or `work[i, j]`")
        return None
    for sub in indices:
        expect(ctx, sub, infer(sub, ctx, scope), "int", f"an index of handle `{name.id}`")
    return name
