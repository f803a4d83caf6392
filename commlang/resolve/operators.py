"""Operators: what they take and what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.resolve.expect import expect
from commlang.resolve.kinds import (
    ARITHMETIC,
    BOOL,
    DURATION,
    NUMBER,
    TENSOR,
    UNKNOWN,
    Kind,
    Type,
    join,
)

if TYPE_CHECKING:
    from commlang.resolve.context import Context
    from commlang.resolve.scope import Scope
    from commlang.syntax import ast


def contents(node: ast.Expr, type_: Type, what: str, ctx: Context, scope: Scope) -> Type:
    """The type of computing with a tensor: fine in a contract, else a finding."""
    if scope.contract or scope.deferred:
        return TENSOR
    ctx.report(
        "CL103",
        node.span,
        f"{what} needs a number, not {type_}: contents are known only during the run",
        "combine tensors with an arrow: `x -> y, op=sum`; only contracts compute with contents",
    )
    return UNKNOWN


def binary(node: ast.Binary, left: Type, right: Type, ctx: Context, scope: Scope) -> Type:
    """The type of `left op right`."""
    result = UNKNOWN
    wrong = False
    for operand, type_ in ((node.left, left), (node.right, right)):
        if type_.kind is Kind.TENSOR:
            result = contents(operand, type_, f"`{node.op}`", ctx, scope)
            wrong = wrong or result is UNKNOWN
        elif type_.kind not in ARITHMETIC:
            expect(ctx, operand, type_, "arithmetic", f"`{node.op}`")
            wrong = True
        elif type_.kind is Kind.DURATION and node.op not in ("+", "-", "*", "/"):
            expect(ctx, operand, type_, "int", f"`{node.op}`")
            wrong = True
    return result if wrong or result is TENSOR else _numbers(node.op, left, right)


def _numbers(op: str, left: Type, right: Type) -> Type:
    if Kind.DURATION in (left.kind, right.kind):
        return NUMBER if op == "/" and left.kind is right.kind else DURATION
    if op == "/":
        return NUMBER
    return join(left, right)


def compare(node: ast.Compare, types: list[Type], ctx: Context, scope: Scope) -> Type:
    """The type of a chain of comparisons."""
    for i, op in enumerate(node.ops):
        pair = (node.operands[i], types[i]), (node.operands[i + 1], types[i + 1])
        if op in ("in", "not in"):
            (item, item_type), (container, container_type) = pair
            expect(ctx, item, item_type, "int", f"the left side of `{op}`")
            expect(ctx, container, container_type, "iterable", f"`{op}`")
        else:
            _compared(node, op, pair, ctx, scope)
    return BOOL


Operand = tuple["ast.Expr", Type]


def _compared(
    node: ast.Compare, op: str, pair: tuple[Operand, Operand], ctx: Context, scope: Scope
) -> None:
    for operand, type_ in pair:
        if type_.kind is Kind.TENSOR and not scope.contract:
            message = f"`{op}` cannot compare {type_}: contents are known only during the run"
            ctx.report("CL103", operand.span, message, "state what holds of contents in `ensure`")
            return
    (_, a), (_, b) = pair
    if not _comparable(op, a.kind, b.kind):
        ctx.report("CL103", node.span, f"`{op}` cannot compare {a} with {b}")


_SAME = (Kind.BOOL, Kind.STRING, Kind.OP)


def _comparable(op: str, a: Kind, b: Kind) -> bool:
    """Numbers and contents have an order; bools, strings and ops are the same or not."""
    ordered = {*ARITHMETIC, Kind.TENSOR, Kind.UNKNOWN}
    if a in ordered and b in ordered:
        return True
    if Kind.TENSOR in (a, b):
        return Kind.BOOL in (a, b)
    equal = {*_SAME, Kind.UNKNOWN}
    return op in ("==", "!=") and a in equal and b in equal and (a is b or Kind.UNKNOWN in (a, b))
