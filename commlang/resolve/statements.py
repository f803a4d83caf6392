"""What each statement needs, and what may not stand where it does."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from commlang.operations import OPERATIONS
from commlang.resolve.expect import bare, expect
from commlang.resolve.expressions import clauses, infer, no_rank, targets
from commlang.resolve.externs import speaks_of_contents
from commlang.resolve.handles import check_handle, check_wait
from commlang.resolve.kinds import GROUP, UNKNOWN, Kind, Type
from commlang.resolve.operation_calls import call_statement
from commlang.resolve.shapes import temp_type
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.resolve.context import Context
    from commlang.resolve.scope import Scope


@singledispatch
def check(node: ast.Node, ctx: Context, scope: Scope) -> None:
    """Check a statement and bind the names it introduces in `scope`."""
    raise NotImplementedError(type(node).__name__)


def block(body: tuple[ast.Stmt, ...], ctx: Context, scope: Scope) -> None:
    """Check the statements of a block whose scope this is."""
    for statement in body:
        check(statement, ctx, scope)


def _condition(node: ast.Expr, what: str, ctx: Context, scope: Scope) -> None:
    want = "truth" if scope.contract else "condition"
    expect(ctx, node, infer(node, ctx, scope), want, what)


# ------------------------------------------------------------------------- contracts


@check.register(ast.Require)
def _require(node: ast.Require, ctx: Context, scope: Scope) -> None:
    _condition(node.condition, "`require`", ctx, scope)


@check.register(ast.Ensure)
@check.register(ast.Assume)
def _contract(node: ast.Ensure | ast.Assume, ctx: Context, scope: Scope) -> None:
    word = "`ensure`" if isinstance(node, ast.Ensure) else "`assume`"
    inner = clauses(node.clauses, ctx, scope.child(contract=True))
    _condition(node.condition, word, ctx, inner)


@check.register(ast.Cost)
def _cost(node: ast.Cost, ctx: Context, scope: Scope) -> None:
    expect(ctx, node.value, infer(node.value, ctx, scope), "arithmetic", "`cost`")


@check.register(ast.Preset)
def _preset(node: ast.Preset, ctx: Context, scope: Scope) -> None:
    """Presets are checked together, where the parameters are known (`definitions`)."""


# ------------------------------------------------------------------------ definitions


@check.register(ast.Mesh)
def _mesh(node: ast.Mesh, ctx: Context, scope: Scope) -> None:
    for axis in node.axes:
        expect(ctx, axis.value, infer(axis.value, ctx, scope), "int", f"axis `{axis.name}`")
    for axis in node.axes:
        if not ctx.reserved(axis.name, axis.span):
            ctx.bind(scope, axis.name, axis.span, GROUP, "a mesh axis")


@check.register(ast.Group)
def _group(node: ast.Group, ctx: Context, scope: Scope) -> None:
    expect(ctx, node.value, infer(node.value, ctx, scope), "members", "`group`")
    ctx.bind(scope, node.target.id, node.target.span, GROUP, "a group")


@check.register(ast.Let)
def _let(node: ast.Let, ctx: Context, scope: Scope) -> None:
    type_ = infer(node.value, ctx, scope)
    ctx.bind(scope, node.target.id, node.target.span, type_, "a `let`")


@check.register(ast.LetFunction)
def _let_function(node: ast.LetFunction, ctx: Context, scope: Scope) -> None:
    inner = scope.child(deferred=True)
    for param in node.params:
        ctx.bind(inner, param.id, param.span, UNKNOWN, "a parameter")
    result = infer(node.value, ctx, inner)
    names = tuple(param.id for param in node.params)
    contract = speaks_of_contents(node.value, ctx, inner)
    type_ = Type(Kind.FUNCTION, (result,), names, contract=contract)
    ctx.bind(scope, node.target.id, node.target.span, type_, "a `let` function")


@check.register(ast.Temp)
def _temp(node: ast.Temp, ctx: Context, scope: Scope) -> None:
    type_ = temp_type(node, ctx, scope)
    ctx.bind(scope, node.target.id, node.target.span, type_, "a `temp`")


# ---------------------------------------------------------------------------- control


@check.register(ast.For)
def _for(node: ast.For, ctx: Context, scope: Scope) -> None:
    iterable = infer(node.iterable, ctx, scope)
    inner = scope.child()
    targets(node.targets, node.iterable, iterable, ctx, inner)
    block(node.body, ctx, inner)


@check.register(ast.If)
def _if(node: ast.If, ctx: Context, scope: Scope) -> None:
    for branch in node.branches:
        if branch.condition is not None:
            _condition(branch.condition, "`if`", ctx, scope)
        block(branch.body, ctx, scope.child())


@check.register(ast.Parallel)
def _parallel(node: ast.Parallel, ctx: Context, scope: Scope) -> None:
    inner = scope.child(parallel=True)
    if node.iterable is not None:
        iterable = infer(node.iterable, ctx, scope)
        targets(node.targets, node.iterable, iterable, ctx, inner)
    block(node.body, ctx, inner)


@check.register(ast.Sequence)
def _sequence(node: ast.Sequence, ctx: Context, scope: Scope) -> None:
    block(node.body, ctx, scope.child())


@check.register(ast.Pass)
def _pass(node: ast.Pass, ctx: Context, scope: Scope) -> None:
    pass


# ------------------------------------------------------------------------- operations


@check.register(ast.CallStatement)
def _call(node: ast.CallStatement, ctx: Context, scope: Scope) -> None:
    call_statement(node.call, ctx, scope)


_TRANSFER = {"op": "op", "tag": "int"}


@check.register(ast.Transfer)
def _transfer(node: ast.Transfer, ctx: Context, scope: Scope) -> None:
    _place(node.source, "the left side of `->`", ctx, scope)
    _place(node.target, "the right side of `->`", ctx, scope)
    local = node.source.rank is None and node.target.rank is None
    what = "a local copy" if local else "a transfer"
    known = ["op"] if local else list(_TRANSFER)
    given: dict[str, ast.Keyword] = {}
    for keyword in node.keywords:
        type_ = infer(keyword.value, ctx, scope)
        if keyword.name not in known:
            hint = ctx.suggest(keyword.name, known) or f"{what} takes {', '.join(known)}"
            message = f"{what} has no argument `{keyword.name}`"
            ctx.report("CL102", keyword.span, message, hint)
        elif keyword.name in given:
            other = (given[keyword.name].span, "given here first")
            message = f"{what} is given `{keyword.name}` twice"
            ctx.report("CL102", keyword.span, message, other=other)
        else:
            given[keyword.name] = keyword
            want = _TRANSFER[keyword.name]
            expect(ctx, keyword.value, type_, want, f"`{keyword.name}` of {what}")


def _place(node: ast.Place, what: str, ctx: Context, scope: Scope) -> None:
    type_ = infer(node.value, ctx, scope)
    if type_.kind in (Kind.INT, Kind.NUMBER) and what.startswith("the left"):
        message = f"{what} needs a tensor, not {type_}"
        ctx.report("CL103", node.value.span, message, "to set every element write `fill(x, value)`")
    else:
        expect(ctx, node.value, type_, "tensor", what)
    if node.rank is not None:
        no_rank(node.value, "write `x[a] @ a -> y @ b` or `x[b] @ a -> y @ b`", ctx)
        rank = infer(node.rank, ctx, scope)
        expect(ctx, node.rank, rank, "rank", "the right side of `@`")


@check.register(ast.Async)
def _async(node: ast.Async, ctx: Context, scope: Scope) -> None:
    if scope.parallel:
        message = "`async` inside `parallel:`, which ends only when all in it has ended"
        hint = "drop `handle = async`, or start it outside the block"
        ctx.report("CL104", node.span, message, hint)
    check_handle(node.handle, ctx, scope)
    check(node.operation, ctx, scope)
    _asynchronous(node.operation, ctx, scope)


def _asynchronous(node: ast.CallStatement | ast.Transfer, ctx: Context, scope: Scope) -> None:
    """Only communication can be under way while its rank goes on."""
    if isinstance(node, ast.Transfer):
        local = node.source.rank is None and node.target.rank is None
        what = "a local copy" if local else None
    else:
        func = bare(node.call.func)
        what = _synchronous(func.id, ctx, scope) if isinstance(func, ast.Name) else None
    if what is not None:
        message = f"{what} cannot be `async`: only messages and collectives can"
        ctx.report("CL104", node.span, message)


def _synchronous(name: str, ctx: Context, scope: Scope) -> str | None:
    if scope.find(name) is not None:
        return None
    definition = ctx.module.symbols.get(name)
    if definition is not None:
        word = "pattern" if isinstance(definition.node, ast.Pattern) else "extern"
        return f"the {word} `{name}`"
    operation = OPERATIONS.get(name)
    return f"`{name}`" if operation is not None and not operation.asynchronous else None


@check.register(ast.Wait)
def _wait(node: ast.Wait, ctx: Context, scope: Scope) -> None:
    check_wait(node.handle, ctx, scope)
