"""The parameters of a pattern or extern, as its callers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.dtypes import DTYPES
from commlang.records import record
from commlang.resolve.kinds import (
    CONSTANTS,
    SCALARS,
    UNKNOWN,
    Kind,
    Type,
    tensor,
)
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.source import Span


WANT: dict[Kind, str] = {
    Kind.INT: "int",
    Kind.BOOL: "bool",
    Kind.OP: "op",
    Kind.TENSOR: "tensor",
    Kind.TABLE: "table",
    Kind.UNKNOWN: "plain",
}
"""What is asked for an argument, by the kind of the parameter."""


@record
class Signature:
    """`types` by parameter, in order: UNKNOWN without an annotation, when a call may give any
    number, bool or op. `required` must be given by a call: no default or shape provides it.
    """

    types: dict[str, Type]
    required: frozenset[str]


def signature(node: ast.Pattern | ast.Extern) -> Signature:
    """Read a signature without reporting its faults, which are those of its own file."""
    types: dict[str, Type] = {}
    names = frozenset(p.target.id for p in node.params)
    required: set[str] = set()
    for param in node.params:
        name = param.target.id
        types[name] = (annotated(param.type, names) or UNKNOWN) if param.type else UNKNOWN
        if param.default is None:
            required.add(name)
    sized = {dim.id for p in node.params for dim in _shape(p) if isinstance(dim, ast.Name)}
    sized |= {p.type.name for p in node.params if p.type}
    return Signature(types, frozenset(required - sized))


def implicit_sizes(params: tuple[ast.Param, ...]) -> dict[str, Span]:
    """Names that a shape alone introduces: those that stand alone as a dimension.

    The call's tensors give them their values; inside the pattern they are ints.
    """
    known = {p.target.id for p in params} | set(CONSTANTS)
    found: dict[str, Span] = {}
    for param in params:
        for dim in _shape(param):
            if isinstance(dim, ast.Name) and dim.id not in known:
                found.setdefault(dim.id, dim.span)
    return found


def annotated(type_: ast.TypeRef, params: frozenset[str]) -> Type | None:
    """The type that an annotation names, or None if there is no such type.

    A parameter may stand for the dtype: `pattern f(x: kind[n], n = 1Ki, kind = float32)`.
    """
    ndim = None if type_.shape is None else len(type_.shape)
    if ndim is None and type_.name in SCALARS:
        return SCALARS[type_.name]
    if type_.name == "int":
        return Type(Kind.TABLE, ndim=ndim)
    return tensor(ndim or 0) if type_.name in DTYPES or type_.name in params else None


def _shape(param: ast.Param) -> tuple[ast.Expr, ...]:
    return (param.type.shape or ()) if param.type else ()
