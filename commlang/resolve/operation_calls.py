"""Calls that stand as statements: operations, patterns and externs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.operations import CONTRACT_FUNCTIONS, FUNCTIONS, OPERATIONS, Operation
from commlang.resolve.arguments import bind, misnamed
from commlang.resolve.calls import unknown
from commlang.resolve.expect import bare, expect
from commlang.resolve.expressions import arguments, infer
from commlang.resolve.kinds import Kind
from commlang.resolve.signature import WANT, signature
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.resolve.context import Context
    from commlang.resolve.kinds import Type
    from commlang.resolve.modules import Definition
    from commlang.resolve.scope import Scope


def call_statement(node: ast.Call, ctx: Context, scope: Scope) -> None:
    """Check a call on a line of its own."""
    func = bare(node.func)
    if not isinstance(func, ast.Name) or scope.find(func.id) is not None:
        _value(node, ctx, scope)
    elif func.id in ctx.module.symbols:
        _definition(node, ctx.module.symbols[func.id], arguments(node, ctx, scope), ctx)
    elif func.id in OPERATIONS:
        _operation(node, OPERATIONS[func.id], arguments(node, ctx, scope), ctx)
    elif func.id in FUNCTIONS or func.id in CONTRACT_FUNCTIONS:
        _value(node, ctx, scope)
    else:
        arguments(node, ctx, scope)
        unknown(func, ctx, [*OPERATIONS, *ctx.module.symbols, *scope.visible()])


def _value(node: ast.Call, ctx: Context, scope: Scope) -> None:
    """A value on a line of its own; an error inside it says enough."""
    before = len(ctx.findings)
    type_ = infer(node, ctx, scope)
    callee = scope.find(node.func.id) if isinstance(node.func, ast.Name) else None
    silent = callee is not None and callee.type.kind is Kind.UNKNOWN
    if before == len(ctx.findings) and not (silent and type_.kind is Kind.UNKNOWN):
        message = f"`{ctx.code(node)}` is a value, which alone does nothing"
        hint = "bind it with `let NAME = …` or move it with `value -> target`"
        ctx.report("CL104", node.span, message, hint)


def _operation(
    node: ast.Call, operation: Operation, types: dict[ast.Expr, Type], ctx: Context
) -> None:
    what = f"`{operation.name}`"
    names = [argument.name for argument in operation.arguments]
    required = [argument.name for argument in operation.arguments if argument.required]
    keywords: tuple[str, ...] = ()
    if operation.name == "compute" and node.args and types[node.args[0]].kind is Kind.STRING:
        names, keywords = names[1:], ("duration",)  # `compute("label", matmul=…)`
    found = bind(node, what, names, required, ctx, keywords)
    for argument in operation.arguments:
        value = found.get(argument.name)
        if value is not None:
            want = "data" if argument.name in ("reads", "writes") else argument.type
            expect(ctx, value, types[value], want, f"`{argument.name}` of {what}")
    if not misnamed(node, [argument.name for argument in operation.arguments]):
        _peers(node, operation, found, ctx)
    if operation.name == "compute":
        _compute(node, found, ctx)


_DEFAULT_ROOT = ("scatter", "gather")


def _peers(node: ast.Call, operation: Operation, found: dict[str, ast.Expr], ctx: Context) -> None:
    """A peer or root is named once, as a rank of the pattern or of the group, as in torch."""
    for name in ("dst", "src"):
        local = f"group_{name}"
        if operation.argument(local) is None:
            continue
        if name in found and local in found:
            message = f"`{operation.name}` takes `{name}` or `{local}`, not both"
            ctx.report("CL102", found[local].span, message, other=(found[name].span, "also given"))
        elif name not in found and local not in found and operation.name not in _DEFAULT_ROOT:
            hint = "a receive names its sender: there is none from anybody"
            ctx.report(
                "CL102",
                node.span,
                f"`{operation.name}` needs `{name}`",
                hint if operation.name == "recv" else None,
            )


def _compute(node: ast.Call, found: dict[str, ast.Expr], ctx: Context) -> None:
    if "duration" not in found and "matmul" not in found and len(node.args) <= 5:
        hint = "for example `compute(3ms)` or `compute(matmul=[m, n, k])`"
        ctx.report("CL102", node.span, "`compute` needs `duration` or `matmul`", hint)
    sizes = bare(found["matmul"]) if "matmul" in found else None
    if isinstance(sizes, ast.ListExpr) and len(sizes.items) != 3:
        message = f"`matmul` of `compute` needs three sizes `[m, n, k]`, not {len(sizes.items)}"
        ctx.report("CL103", sizes.span, message)


def _definition(
    node: ast.Call, definition: Definition, types: dict[ast.Expr, Type], ctx: Context
) -> None:
    callee = definition.node
    what = f"`{ctx.code(node.func)}`"
    sig = signature(callee)
    pattern = isinstance(callee, ast.Pattern)
    grouped = next((keyword for keyword in node.keywords if keyword.name == "group"), None)
    if grouped is not None and not pattern and "group" not in sig.types:
        message = f"{what} is an extern, which runs on one rank and takes no `group`"
        ctx.report("CL102", grouped.span, message, "choose the ranks with `if rank in g:`")
        return
    keywords = ["group"] if pattern and "group" not in sig.types else []
    found = bind(node, what, list(sig.types), sig.required, ctx, keywords)
    for name, value in found.items():
        declared = sig.types.get(name)
        want = "group" if declared is None else WANT[declared.kind]
        expect(ctx, value, types[value], want, f"`{name}` of {what}")
