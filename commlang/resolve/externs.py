"""Externs as functions, as contracts call them: what is given, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.operations import CONTRACT_FUNCTIONS
from commlang.resolve.arguments import bind
from commlang.resolve.expect import bare, expect
from commlang.resolve.kinds import NUMERIC, TENSOR, UNKNOWN, Kind, Type, sequence, tensor
from commlang.resolve.signature import WANT, implicit_sizes, signature
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from commlang.resolve.context import Context
    from commlang.resolve.scope import Scope

Types = dict[ast.Expr, Type]


def is_written(param: ast.Param) -> bool:
    """Whether an extern leaves something in a parameter, which is then a tensor."""
    return param.mode in ("write", "update")


def given_in_contracts(extern: ast.Pattern | ast.Extern) -> tuple[ast.Param, ...]:
    """The parameters that a call in a contract gives: all but those only written."""
    return tuple(param for param in extern.params if param.mode != "write")


def extern_named(func: ast.Expr, ctx: Context) -> ast.Extern | None:
    """The extern of the file that goes by a name which nothing nearer binds."""
    found = ctx.module.symbols.get(func.id) if isinstance(func, ast.Name) else None
    return found.node if found is not None and isinstance(found.node, ast.Extern) else None


def speaks_of_contents(value: ast.Expr, ctx: Context, scope: Scope) -> bool:
    """Whether the body of a `let` function says what only contracts can, so that it is theirs."""
    for part in walk(value):
        if isinstance(part, ast.At):
            return True
        func = bare(part.func) if isinstance(part, ast.Call) else None
        if not isinstance(func, ast.Name):
            continue
        binding = scope.find(func.id)
        if binding is not None and binding.type.contract:
            return True
        if binding is None and (func.id in CONTRACT_FUNCTIONS or extern_named(func, ctx)):
            return True
    return False


def call_in_contract(node: ast.Call, extern: ast.Extern, types: Types, ctx: Context) -> Type:
    """The type of what an extern writes; reports what a contract cannot call, or not so."""
    what = f"`{extern.name}`"
    sig = signature(extern)
    given = given_in_contracts(extern)
    names = [param.target.id for param in given]
    written = [param for param in extern.params if is_written(param)]
    _check_function(node, extern, written, sig.types, ctx)
    required = [name for name in names if name in sig.required]
    found = bind(node, what, names, required, ctx)
    for name, value in found.items():
        kind = sig.types[name].kind
        if kind is not Kind.TENSOR or types[value].kind not in NUMERIC:  # a number fills a tensor
            expect(ctx, value, types[value], WANT[kind], f"`{name}` of {what}")
    if len(written) == 1:
        return tensor(sig.types[written[0].target.id].ndim)
    return sequence(TENSOR) if written else UNKNOWN


def _check_function(
    node: ast.Call,
    extern: ast.Extern,
    written: list[ast.Param],
    types: dict[str, Type],
    ctx: Context,
) -> None:
    name, place = extern.name, node.func.span
    if not written:
        message = f"`{name}` writes nothing, so that it has no value"
        ctx.report("CL104", place, message)
        return
    read = [p for p in given_in_contracts(extern) if types[p.target.id].kind is Kind.TENSOR]
    if not read:
        message = f"`{name}` reads no tensor: each call of it makes new data"
        hint = "a contract can call an extern that is a function of what it reads"
        ctx.report("CL104", place, message, hint)
        return
    told = implicit_sizes(given_in_contracts(extern))
    for size in implicit_sizes(extern.params):
        if size not in told:
            message = f"nothing given to `{name}` here tells `{size}`, a size of what it writes"
            hint = f"give the extern a parameter for it: `{size}: int`"
            ctx.report("CL104", place, message, hint)
            return
