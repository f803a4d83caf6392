"""Annotations: dtypes, shapes and how an extern uses its tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.dtypes import ALIASES, DTYPES
from commlang.resolve.expect import expect
from commlang.resolve.expressions import infer
from commlang.resolve.kinds import SCALARS, TENSOR, UNKNOWN, Kind, Type, tensor
from commlang.resolve.signature import annotated

if TYPE_CHECKING:
    from commlang.resolve.context import Context
    from commlang.resolve.scope import Scope
    from commlang.syntax import ast


def param_type(node: ast.TypeRef, params: frozenset[str], ctx: Context) -> Type:
    """The type of an annotated parameter; its shape is left for `check_shape`."""
    type_ = annotated(node, params)
    if type_ is not None:
        return type_
    known = [*DTYPES, *(name for name in SCALARS if node.shape is None)]
    _unknown_dtype(node, known, ctx)
    return UNKNOWN


def temp_type(node: ast.Temp, ctx: Context, scope: Scope) -> Type:
    """The type of a `temp`, which is always a tensor."""
    if node.like is not None:
        type_ = infer(node.like, ctx, scope)
        expect(ctx, node.like, type_, "tensor", "`like`")
        return type_ if type_.kind is Kind.TENSOR else TENSOR
    if node.type is None:
        return TENSOR
    check_shape(node.type, ctx, scope)
    if node.type.name not in DTYPES and scope.find(node.type.name) is None:
        _unknown_dtype(node.type, list(DTYPES), ctx)
    return tensor(len(node.type.shape or ()))


def check_shape(node: ast.TypeRef, ctx: Context, scope: Scope) -> None:
    """Check the dimensions of an annotation, which are ints."""
    for dim in node.shape or ():
        expect(ctx, dim, infer(dim, ctx, scope), "int", "a dimension")


def _unknown_dtype(node: ast.TypeRef, known: list[str], ctx: Context) -> None:
    canonical = ALIASES.get(node.name)
    if canonical is not None:
        hint: str | None = f"write `{canonical}`"
    else:
        hint = ctx.suggest(node.name, known)
    ctx.report("CL103", node.span, f"`{node.name}` is no dtype", hint)
