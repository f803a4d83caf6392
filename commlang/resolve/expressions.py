"""The type of each expression, and every name, index and operand that can never be right."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from commlang.dtypes import DTYPES
from commlang.operations import (
    CONTRACT_FUNCTIONS,
    FUNCTIONS,
    GROUP_ATTRIBUTES,
    OPERATIONS,
    REDUCE_OPS,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)
from commlang.resolve import calls
from commlang.resolve.expect import bare, expect
from commlang.resolve.kinds import (
    ARITHMETIC,
    BOOL,
    CONSTANTS,
    DTYPE,
    DURATION,
    INT,
    NUMBER,
    OP,
    STRING,
    UNKNOWN,
    Kind,
    Type,
    element,
    join,
    sequence,
    tensor,
)
from commlang.resolve.operators import binary, compare, contents
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from commlang.resolve.context import Context
    from commlang.resolve.scope import Scope


@singledispatch
def infer(node: ast.Node, ctx: Context, scope: Scope) -> Type:
    """The type of an expression as used here; reports what is certainly wrong in it."""
    raise NotImplementedError(type(node).__name__)


# ------------------------------------------------------------------- names and literals


@infer.register(ast.Name)
def _name(node: ast.Name, ctx: Context, scope: Scope) -> Type:
    binding = scope.find(node.id)
    if binding is not None:
        if binding.type.kind is not Kind.FUNCTION:
            return binding.type
        _uncalled(node, ctx)
    elif node.id in CONSTANTS:
        return CONSTANTS[node.id]
    elif node.id in REDUCE_OPS:
        return OP
    elif node.id in DTYPES:
        return DTYPE
    elif node.id in FUNCTIONS or node.id in CONTRACT_FUNCTIONS:
        _uncalled(node, ctx)
    elif node.id in ctx.module.symbols or node.id in OPERATIONS:
        calls.no_value(node, ctx)
    else:
        calls.unknown(node, ctx, [*scope.visible(), *CONSTANTS, *REDUCE_OPS])
    return UNKNOWN


def _uncalled(node: ast.Name, ctx: Context) -> None:
    message = f"`{node.id}` is a function, which is no value"
    ctx.report("CL103", node.span, message, f"call it: `{node.id}(…)`")


@infer.register(ast.Number)
def _number(node: ast.Number, ctx: Context, scope: Scope) -> Type:
    if node.unit:
        return DURATION
    return INT if isinstance(node.value, int) else NUMBER


@infer.register(ast.String)
def _string(node: ast.String, ctx: Context, scope: Scope) -> Type:
    return STRING


@infer.register(ast.Paren)
def _paren(node: ast.Paren, ctx: Context, scope: Scope) -> Type:
    return infer(node.inner, ctx, scope)


# ---------------------------------------------------------------- attributes and indices


@infer.register(ast.Attr)
def _attr(node: ast.Attr, ctx: Context, scope: Scope) -> Type:
    base = infer(node.base, ctx, scope)
    if base.kind is Kind.UNKNOWN:
        return UNKNOWN
    if base.kind is Kind.GROUP and node.name in GROUP_ATTRIBUTES:
        return INT
    if base.kind is Kind.TENSOR and node.name in TENSOR_ATTRIBUTES:
        return sequence(INT) if node.name == "shape" else INT
    if base.kind is Kind.TENSOR and node.name in TENSOR_METHODS:
        message = f"`{node.name}` is a method, which is no value"
        ctx.report("CL103", node.span, message, f"call it: `{ctx.code(node)}(…)`")
        return UNKNOWN
    calls.no_attribute(node, base, ctx)
    return UNKNOWN


@infer.register(ast.Slice)
def _slice(node: ast.Slice, ctx: Context, scope: Scope) -> Type:
    for part in (node.low, node.high, node.step):
        if part is not None:
            expect(ctx, part, infer(part, ctx, scope), "int", "a bound of a slice")
    return UNKNOWN


@infer.register(ast.Index)
def _index(node: ast.Index, ctx: Context, scope: Scope) -> Type:
    base = infer(node.base, ctx, scope)
    for sub in node.subs:
        type_ = infer(sub, ctx, scope)
        if not isinstance(sub, ast.Slice):
            expect(ctx, sub, type_, "int", "an index")
    if base.kind is Kind.TENSOR:
        return _view(node, base, ctx)
    type_ = base
    for sub in node.subs:
        if type_.kind not in _INDEXED:
            code = ctx.code(node.base if type_ is base else node)
            what = f"`{code}` is {type_}: it" if type_ is base else f"`{code}`: {type_}"
            ctx.report("CL103", node.span, f"{what} has no elements")
            return UNKNOWN
        type_ = _element(type_, isinstance(sub, ast.Slice))
    return type_


_INDEXED = (Kind.GROUP, Kind.SEQUENCE, Kind.TUPLE, Kind.TABLE, Kind.UNKNOWN)


def _element(type_: Type, is_slice: bool) -> Type:
    each = element(type_)
    if not is_slice:
        return each
    # A slice of chunks is one view, one of another list of tensors still a list.
    return UNKNOWN if each.kind in (Kind.TENSOR, Kind.UNKNOWN) else sequence(each)


def _view(node: ast.Index, base: Type, ctx: Context) -> Type:
    if base.ndim is None:
        return base
    slices = sum(isinstance(sub, ast.Slice) for sub in node.subs)
    given = len(node.subs)
    if given > base.ndim:
        words = f"{given} {'index' if given == 1 else 'indices'}"
        dims = f"{base.ndim} dimension{'s' * (base.ndim != 1)}"
        ctx.report("CL103", node.span, f"{words} for a tensor of {dims}")
        return tensor(None)
    return tensor(base.ndim - given + slices)


# ------------------------------------------------------------------------------ operators


@infer.register(ast.Unary)
def _unary(node: ast.Unary, ctx: Context, scope: Scope) -> Type:
    type_ = infer(node.operand, ctx, scope)
    if node.op == "not":
        expect(ctx, node.operand, type_, "condition", "`not`")
        return BOOL
    if type_.kind is Kind.TENSOR:
        return contents(node.operand, type_, f"`{node.op}`", ctx, scope)
    expect(ctx, node.operand, type_, "int" if node.op == "~" else "arithmetic", f"`{node.op}`")
    return type_ if type_.kind in ARITHMETIC else UNKNOWN


@infer.register(ast.Binary)
def _binary(node: ast.Binary, ctx: Context, scope: Scope) -> Type:
    return binary(node, infer(node.left, ctx, scope), infer(node.right, ctx, scope), ctx, scope)


@infer.register(ast.BoolOp)
def _bool_op(node: ast.BoolOp, ctx: Context, scope: Scope) -> Type:
    for operand in node.operands:
        expect(ctx, operand, infer(operand, ctx, scope), "condition", f"`{node.op}`")
    return BOOL


@infer.register(ast.Compare)
def _compare(node: ast.Compare, ctx: Context, scope: Scope) -> Type:
    types = [infer(operand, ctx, scope) for operand in node.operands]
    return compare(node, types, ctx, scope)


@infer.register(ast.Conditional)
def _conditional(node: ast.Conditional, ctx: Context, scope: Scope) -> Type:
    expect(ctx, node.test, infer(node.test, ctx, scope), "condition", "`if`")
    return join(infer(node.then, ctx, scope), infer(node.other, ctx, scope))


@infer.register(ast.At)
def _at(node: ast.At, ctx: Context, scope: Scope) -> Type:
    if not scope.contract and not scope.deferred:
        message = "`@` names another rank's value, which only contracts and transfers can"
        hint = "move it first: `x @ r -> y @ rank`"
        ctx.report("CL104", node.span, message, hint)
    no_rank(node.value, "for this rank's part write `(old(x) @ r)[rank]`, for rank `r`'s `r`", ctx)
    value = infer(node.value, ctx, scope)
    expect(ctx, node.rank, infer(node.rank, ctx, scope), "rank", "the right side of `@`")
    return value if scope.contract or scope.deferred else UNKNOWN


def no_rank(value: ast.Expr, hint: str, ctx: Context) -> None:
    """Report `rank` in the E of `E @ r`: whose rank it is would be anybody's guess."""
    for node in walk(value):
        if isinstance(node, ast.Name) and node.id == "rank" and node not in ctx.ambiguous:
            ctx.ambiguous.add(node)  # an `@` inside this one would tell again
            message = "`rank` inside `E @ r` could mean this rank or rank `r`"
            ctx.report("CL104", node.span, message, hint)


# ------------------------------------------------------------- lists and comprehensions


@infer.register(ast.ListExpr)
def _list(node: ast.ListExpr, ctx: Context, scope: Scope) -> Type:
    return sequence(join(*(infer(item, ctx, scope) for item in node.items)))


@infer.register(ast.Comprehension)
def _comprehension(node: ast.Comprehension, ctx: Context, scope: Scope) -> Type:
    return sequence(infer(node.element, ctx, clauses(node.clauses, ctx, scope)))


def clauses(found: tuple[ast.Clause, ...], ctx: Context, scope: Scope) -> Scope:
    """The scope inside the `for` clauses of a comprehension or contract."""
    for clause in found:
        iterable = infer(clause.iterable, ctx, scope)
        scope = scope.child()
        targets(clause.targets, clause.iterable, iterable, ctx, scope)
        if clause.condition is not None:
            type_ = infer(clause.condition, ctx, scope)
            expect(ctx, clause.condition, type_, "condition", "`if`")
    return scope


def targets(
    names: tuple[ast.Target, ...], node: ast.Expr, iterable: Type, ctx: Context, scope: Scope
) -> None:
    """Bind the names of a `for` in `scope`, which is the scope of its body."""
    before = len(ctx.findings)
    expect(ctx, node, iterable, "iterable", "`for … in`")
    each = element(iterable) if before == len(ctx.findings) else UNKNOWN
    types = _unpack(names, node, each, ctx)
    for target, type_ in zip(names, types, strict=True):
        ctx.bind(scope, target.id, target.span, type_, "a loop name")


def _unpack(
    names: tuple[ast.Target, ...], node: ast.Expr, each: Type, ctx: Context
) -> tuple[Type, ...]:
    if len(names) == 1:
        return (each,)
    if each.kind is Kind.TUPLE and len(each.items) == len(names):
        return each.items
    if each.kind not in (Kind.UNKNOWN, Kind.SEQUENCE, Kind.GROUP, Kind.TABLE):
        what = f"tuples of {len(each.items)}" if each.kind is Kind.TUPLE else f"each {each}"
        message = f"{len(names)} names for the elements of `{ctx.code(node)}`, {what}"
        ctx.report("CL103", names[0].span, message)
    return (element(each),) * len(names)


@infer.register(ast.Call)
def _call(node: ast.Call, ctx: Context, scope: Scope) -> Type:
    base = UNKNOWN
    func = bare(node.func)
    if isinstance(func, ast.Attr):
        base = infer(func.base, ctx, scope)
    elif not isinstance(func, ast.Name):
        base = infer(func, ctx, scope)
    return calls.call(node, base, arguments(node, ctx, scope), ctx, scope)


def arguments(node: ast.Call, ctx: Context, scope: Scope) -> dict[ast.Expr, Type]:
    """The types of a call's arguments."""
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    types = {value: infer(value, ctx, scope) for value in values if not folds(node, value, scope)}
    return types | {value: _function(value, scope) for value in values if value not in types}


def folds(node: ast.Call, value: ast.Expr, scope: Scope) -> bool:
    """Whether a value is the function that a `fold` applies: nowhere else is one a value."""
    called = isinstance(node.func, ast.Name) and node.func.id == "fold"
    first = bool(node.args) and node.args[0] is value and isinstance(value, ast.Name)
    return called and first and scope.find("fold") is None and _function(value, scope) != UNKNOWN


def _function(value: ast.Expr, scope: Scope) -> Type:
    binding = scope.find(value.id) if isinstance(value, ast.Name) else None
    return binding.type if binding and binding.type.kind is Kind.FUNCTION else UNKNOWN
