"""What a place in a pattern needs, and the message for what cannot be that."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from commlang.operations import REDUCE_OPS
from commlang.records import record
from commlang.resolve.kinds import ARITHMETIC, NUMERIC, Kind, Type
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.resolve.context import Context


@record
class Want:
    """The words for what is needed, and the kinds that may turn out to be that.

    `element` are the kinds that the elements of a list may have; None: any.
    """

    words: str
    kinds: frozenset[Kind]
    element: frozenset[Kind] | None = None


def _kinds(*kinds: Kind) -> frozenset[Kind]:
    return frozenset(kinds)


_TENSOR = _kinds(Kind.TENSOR)
_LISTS = _kinds(Kind.SEQUENCE, Kind.GROUP, Kind.TABLE)

# Numbers are lenient: `n / 2` is exact, so a NUMBER may well be an int once n is known.
WANTS: dict[str, Want] = {
    "tensor": Want("a tensor", _TENSOR),
    "tensors": Want("a list of tensors", _kinds(Kind.SEQUENCE), _TENSOR),
    "data": Want("a tensor or a list of tensors", _TENSOR | {Kind.SEQUENCE}, _TENSOR),
    "rank": Want("a rank (an int)", NUMERIC),
    "int": Want("an int", NUMERIC),
    "number": Want("a number", NUMERIC | {Kind.BOOL}),
    "arithmetic": Want("a number", ARITHMETIC),
    "bool": Want("a bool", _kinds(Kind.BOOL)),
    "condition": Want("true or false", _kinds(Kind.BOOL)),
    "truth": Want("true or false", _kinds(Kind.BOOL)),
    "duration": Want("a duration", _kinds(Kind.DURATION, Kind.NUMBER)),
    "op": Want("a reduce op", _kinds(Kind.OP)),
    "group": Want("a group", _kinds(Kind.GROUP)),
    "members": Want("a list of ranks", _LISTS, NUMERIC),
    "label": Want("a string", _kinds(Kind.STRING)),
    "ints": Want("a list of ints", _LISTS, NUMERIC),
    "matmul": Want("a list `[m, n, k]` of ints", _LISTS, NUMERIC),
    "table": Want("a table of ints", _LISTS, NUMERIC | _LISTS),
    "iterable": Want("a list, a range or a group", _LISTS),
    "counted": Want("a list, a range or a group", _LISTS | _TENSOR),
    "plain": Want(
        "a number, a bool, an op or a dtype",
        ARITHMETIC | {Kind.BOOL, Kind.OP, Kind.DTYPE, Kind.STRING, Kind.TABLE},
    ),
}
"""What may be asked for: the argument types of `operations` and the needs of statements."""

_WHOLE = ("int", "rank")

_HELP: dict[tuple[str, Kind], str] = {
    ("iterable", Kind.INT): "did you mean `range({code})`?",
    ("iterable", Kind.NUMBER): "did you mean `range({code})`?",
    ("iterable", Kind.TENSOR): "cut it with `{code}.chunks(k)`, or index it",
    ("tensors", Kind.TENSOR): "`{code}.chunks(world)` is a list of views of it",
    ("tensor", Kind.SEQUENCE): "name one element: `{code}[i]`",
    ("condition", Kind.INT): "compare it: `{code} != 0`",
    ("condition", Kind.TENSOR): "no control flow looks at the contents of a tensor",
    ("condition", Kind.SEQUENCE): "write `len({code}) > 0`",
    ("condition", Kind.GROUP): "write `rank in {code}`",
    ("truth", Kind.TENSOR): "say what it holds: `{code} == …`",
    ("int", Kind.TENSOR): "the contents of a tensor are known only during the run",
    ("rank", Kind.GROUP): "a rank of a group is `{code}[i]`, `{code}.next` or `{code}.prev`",
    ("rank", Kind.TENSOR): "ranks are ints known before the run",
    ("group", Kind.INT): "a group is `ranks`, an axis of a `mesh` or bound by `group NAME = …`",
    ("group", Kind.SEQUENCE): "name it first: `group NAME = …`",
    ("duration", Kind.INT): "a duration has a unit, as in `3ms`",
    ("arithmetic", Kind.BOOL): "write `1 if {code} else 0`",
    ("int", Kind.BOOL): "write `1 if {code} else 0`",
}
_OPS = "the ops are " + ", ".join(REDUCE_OPS)


def fits(actual: Type, want: Want) -> bool:
    """Whether a value of this type may be what is needed; False only if it never can be."""
    if actual.kind is Kind.UNKNOWN:
        return True
    if actual.kind not in want.kinds:
        return False
    if actual.kind is not Kind.SEQUENCE or want.element is None:
        return True
    return actual.items[0].kind in want.element | {Kind.UNKNOWN}


def expect(ctx: Context, node: ast.Expr, actual: Type, want: str, what: str) -> None:
    """Report a value that can never be what `what` needs."""
    wanted = WANTS[want]
    inner = bare(node)
    if want in _WHOLE and isinstance(inner, ast.Number) and _is_broken(inner):
        ctx.report("CL103", node.span, f"{what} needs {wanted.words}, not `{inner.text}`")
        return
    if fits(actual, wanted):
        return
    hint = _OPS if want == "op" else _HELP.get((want, actual.kind))
    hint = hint.format(code=ctx.code(node)) if hint else None
    ctx.report("CL103", node.span, f"{what} needs {wanted.words}, not {actual}", hint)


def _is_broken(node: ast.Number) -> bool:
    return isinstance(node.value, Fraction) and not node.unit


def bare(node: ast.Expr) -> ast.Expr:
    """An expression without the parentheses around it."""
    while isinstance(node, ast.Paren):
        node = node.inner
    return node
