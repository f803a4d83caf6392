"""Parser callbacks: one method per grammar rule, from its children to a syntax node.

Children hold every token, punctuation too, because a node's span runs from its first child to
its last. Lark calls the methods while it parses, so no intermediate tree is made.
"""

# Lark hands over children of every kind in lists without types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, cast

from lark import Token

from commlang.source import Span
from commlang.syntax import ast
from commlang.syntax.literals import number

Children: TypeAlias = list[Any]
T = TypeVar("T")


class LiteralError(ValueError):
    """A literal with no value; carries its span."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


def _start(child: Any) -> int:
    return cast("int", child.start_pos if isinstance(child, Token) else child.span.start)


def _end(child: Any) -> int:
    return cast("int", child.end_pos if isinstance(child, Token) else child.span.end)


def _span(children: Children) -> Span:
    last = len(children) - 1
    while last and isinstance(children[last], Token) and children[last].type[0] == "_":
        last -= 1  # newlines and dedents are no part of the node
    return Span(_start(children[0]), _end(children[last]))


def _nodes(children: Children, kind: type[T] | tuple[type[T], ...]) -> tuple[T, ...]:
    return tuple(c for c in children if isinstance(c, kind))


def _exprs(children: Children) -> tuple[ast.Expr, ...]:
    found = (c for c in children if isinstance(c, ast.Node) and not isinstance(c, _NOT_EXPR))
    return cast("tuple[ast.Expr, ...]", tuple(found))


def _names(children: Children) -> list[Token]:
    return [c for c in children if isinstance(c, Token) and c.type == "NAME"]


def _target(token: Token) -> ast.Target:
    return ast.Target(_span([token]), str(token))


def _only(items: tuple[T, ...]) -> T | None:
    return items[0] if items else None


_NOT_EXPR = (ast.Keyword, ast.Clause, ast.TypeRef, ast.Docstring)


def _unquote(token: Token) -> str:
    quotes = 3 if token.startswith('"""') else 1
    return str(token)[quotes:-quotes]


class Builder:
    """The callbacks; names are those of `grammar/commlang.lark`."""

    # ------------------------------------------------------------ expressions

    def name(self, c: Children) -> ast.Name:
        return ast.Name(_span(c), str(c[0]))

    def number(self, c: Children) -> ast.Number:
        try:
            value, unit = number(str(c[0]))
        except ValueError as error:
            raise LiteralError(str(error), _span(c)) from None
        return ast.Number(_span(c), value, unit, str(c[0]))

    def string(self, c: Children) -> ast.String:
        return ast.String(_span(c), _unquote(c[0]))

    def paren(self, c: Children) -> ast.Paren:
        return ast.Paren(_span(c), c[1])

    def attr(self, c: Children) -> ast.Attr:
        return ast.Attr(_span(c), c[0], str(c[2]))

    def index(self, c: Children) -> ast.Index:
        return ast.Index(_span(c), c[0], c[2])

    def subs(self, c: Children) -> tuple[ast.Expr | ast.Slice, ...]:
        return cast("tuple[ast.Expr | ast.Slice, ...]", _nodes(c, ast.Node))

    def slice(self, c: Children) -> ast.Slice:
        colon = next(i for i, x in enumerate(c) if isinstance(x, Token) and x == ":")
        after = c[colon + 1 :]
        step = next((x for x in after if isinstance(x, tuple)), None)
        high = next(iter(_exprs(after)), None)
        end = step[0] if step else _end(after[-1] if after else c[colon])
        span = Span(_start(c[0]), end)
        return ast.Slice(span, c[0] if colon else None, high, step[1] if step else None)

    def step(self, c: Children) -> tuple[int, ast.Expr | None]:
        return _end(c[-1]), c[1] if len(c) > 1 else None

    def call(self, c: Children) -> ast.Call:
        args: tuple[Any, ...] = c[2] if isinstance(c[2], tuple) else ()
        positional = tuple(a for a in args if not isinstance(a, ast.Keyword))
        return ast.Call(_span(c), c[0], positional, _nodes(list(args), ast.Keyword))

    def args(self, c: Children) -> tuple[Any, ...]:
        seen = False
        for item in _nodes(c, ast.Node):
            if seen and not isinstance(item, ast.Keyword):
                raise LiteralError("a positional argument after a keyword argument", item.span)
            seen = isinstance(item, ast.Keyword)
        return _nodes(c, ast.Node)

    def gen_args(self, c: Children) -> tuple[Any, ...]:
        return (ast.Comprehension(Span(_start(c[0]), c[1][-1].span.end), c[0], c[1], ""),)

    def kwarg(self, c: Children) -> ast.Keyword:
        return ast.Keyword(_span(c), str(c[0]), c[2])

    axis = kwarg

    def comp_for(self, c: Children) -> tuple[ast.Clause, ...]:
        return _nodes(c, ast.Clause)

    def comp_clause(self, c: Children) -> ast.Clause:
        condition: ast.Expr | None = c[4] if len(c) > 4 else None
        return ast.Clause(_span(c[:4]) if condition is None else _span(c), c[1], c[3], condition)

    def comp_if(self, c: Children) -> ast.Expr:
        return c[1]

    def gen(self, c: Children) -> ast.Comprehension:
        return ast.Comprehension(_span(c), c[1], c[2], "()")

    def list_comp(self, c: Children) -> ast.Comprehension:
        return ast.Comprehension(_span(c), c[1], c[2], "[]")

    def list(self, c: Children) -> ast.ListExpr:
        return ast.ListExpr(_span(c), c[1] if isinstance(c[1], tuple) else ())

    def list_items(self, c: Children) -> tuple[ast.Expr, ...]:
        return _exprs(c)

    def unary(self, c: Children) -> ast.Unary:
        return ast.Unary(_span(c), cast("Any", str(c[0])), c[1])

    def binary(self, c: Children) -> ast.Binary:
        return ast.Binary(_span(c), str(c[1]), c[0], c[2])

    power = binary

    def and_(self, c: Children) -> ast.BoolOp:
        return ast.BoolOp(_span(c), "and", _exprs(c))

    def or_(self, c: Children) -> ast.BoolOp:
        return ast.BoolOp(_span(c), "or", _exprs(c))

    def cmp(self, c: Children) -> ast.Compare:
        return ast.Compare(_span(c), _nodes(c, _Op), _exprs(c))

    def comp_op(self, c: Children) -> _Op:
        return _Op(" ".join(str(t) for t in c))

    def cond(self, c: Children) -> ast.Conditional:
        return ast.Conditional(_span(c), c[2], c[0], c[4])

    def at(self, c: Children) -> ast.At:
        return ast.At(_span(c), c[0], c[2])

    # ------------------------------------------------------------- statements

    def doc(self, c: Children) -> ast.Docstring:
        return ast.Docstring(_span(c), _unquote(c[0]))

    def require(self, c: Children) -> ast.Require:
        message = _unquote(c[3]) if len(c) > 3 and c[3].type == "STRING" else None
        return ast.Require(_span(c), c[1], message)

    def ensure(self, c: Children) -> ast.Ensure:
        clauses, span = _clauses(c)
        return ast.Ensure(span, c[1], clauses)

    def assume(self, c: Children) -> ast.Assume:
        clauses, span = _clauses(c)
        return ast.Assume(span, c[1], clauses)

    def cost(self, c: Children) -> ast.Cost:
        return ast.Cost(_span(c), c[1])

    def preset(self, c: Children) -> ast.Preset:
        return ast.Preset(_span(c), str(c[1]), _nodes(c, ast.Keyword))

    def mesh(self, c: Children) -> ast.Mesh:
        return ast.Mesh(_span(c), _nodes(c, ast.Keyword))

    def group(self, c: Children) -> ast.Group:
        return ast.Group(_span(c), _target(c[1]), c[3])

    def let(self, c: Children) -> ast.Let:
        return ast.Let(_span(c), _target(c[1]), c[3])

    def let_fn(self, c: Children) -> ast.LetFunction:
        name, *params = map(_target, _names(c))
        value = next(iter(_exprs(c)))
        return ast.LetFunction(_span(c), name, tuple(params), value)

    def temp(self, c: Children) -> ast.Temp:
        kind: ast.TypeRef | ast.Keyword = c[3]
        if isinstance(kind, ast.Keyword):
            return ast.Temp(_span(c), _target(c[1]), None, kind.value)
        return ast.Temp(_span(c), _target(c[1]), kind, None)

    def like(self, c: Children) -> ast.Keyword:
        return ast.Keyword(_span(c), "like", c[1])

    def for_(self, c: Children) -> ast.For:
        return ast.For(_head(c), c[1], c[3], c[5])

    def targets(self, c: Children) -> tuple[ast.Target, ...]:
        return tuple(map(_target, _names(c)))

    def if_(self, c: Children) -> ast.If:
        first = ast.Branch(_head(c), c[1], c[3])
        return ast.If(_head(c), (first, *_nodes(c[4:], ast.Branch)))

    def elif_(self, c: Children) -> ast.Branch:
        return ast.Branch(_head(c), c[1], c[3])

    def else_(self, c: Children) -> ast.Branch:
        return ast.Branch(_head(c), None, c[2])

    def parallel(self, c: Children) -> ast.Parallel:
        targets, iterable = c[1] if isinstance(c[1], tuple) else ((), None)
        return ast.Parallel(_head(c), targets, iterable, c[-1])

    def comp_head(self, c: Children) -> tuple[tuple[ast.Target, ...], ast.Expr]:
        return c[1], c[3]

    def sequence(self, c: Children) -> ast.Sequence:
        return ast.Sequence(_head(c), c[-1])

    def pass_(self, c: Children) -> ast.Pass:
        return ast.Pass(_span(c))

    def wait(self, c: Children) -> ast.Wait:
        return ast.Wait(_span(c), c[2])

    def async_(self, c: Children) -> ast.Async:
        operation = c[3]
        if isinstance(operation, ast.Call):
            operation = ast.CallStatement(operation.span, operation)
        return ast.Async(_span(c), c[0], operation)

    def simple(self, c: Children) -> ast.CallStatement | ast.Transfer:
        if isinstance(c[0], ast.Call):
            return ast.CallStatement(c[0].span, c[0])
        return c[0]

    def suite(self, c: Children) -> tuple[ast.Stmt, ...]:
        return cast("tuple[ast.Stmt, ...]", _nodes(c, ast.Node))

    def transfer(self, c: Children) -> ast.Transfer:
        return ast.Transfer(_span(c), c[0], c[2], _nodes(c, ast.Keyword))

    def place(self, c: Children) -> ast.Place:
        return ast.Place(_span(c), c[0], c[2] if len(c) > 1 else None)

    # ----------------------------------------------------------------- module

    def type(self, c: Children) -> ast.TypeRef:
        shape = _exprs(c[1:]) if len(c) > 1 else None
        return ast.TypeRef(_span(c), str(c[0]), shape)

    def mode(self, c: Children) -> _Op:
        return _Op(str(c[0]))

    def param(self, c: Children) -> ast.Param:
        kind = _only(_nodes(c, ast.TypeRef))
        default = c[-1] if len(c) > 2 and isinstance(c[-2], Token) and c[-2] == "=" else None
        mode = cast("ast.Mode | None", _only(_nodes(c, _Op)))
        return ast.Param(_span(c), _target(c[0]), mode, kind, default)

    def params(self, c: Children) -> tuple[ast.Param, ...]:
        return _nodes(c, ast.Param)

    def pattern(self, c: Children) -> ast.Pattern:
        params: tuple[ast.Param, ...] = c[3] if isinstance(c[3], tuple) else ()
        doc = _only(_nodes(c, ast.Docstring))
        body = tuple(x for x in c if isinstance(x, ast.Node) and x is not doc)
        return ast.Pattern(_head(c), _target(c[1]), params, doc, cast("Any", body))

    def extern(self, c: Children) -> ast.Extern:
        params: tuple[ast.Param, ...] = c[3] if isinstance(c[3], tuple) else ()
        doc = _only(_nodes(c, ast.Docstring))
        body = tuple(x for x in c if isinstance(x, ast.Node) and x is not doc)
        return ast.Extern(_head(c), _target(c[1]), params, doc, cast("Any", body))

    def import_name(self, c: Children) -> ast.ImportName:
        return ast.ImportName(_span(c), str(c[0]), _target(c[-1]))

    def dotted(self, c: Children) -> tuple[int, tuple[str, ...]]:
        return (len(c[0]) if c[0].type == "DOTS" else 0), tuple(map(str, _names(c)))

    def import_stmt(self, c: Children) -> ast.Import:
        level, path = c[1]
        return ast.Import(_span(c), level, path, _nodes(c, ast.ImportName))

    def start(self, c: Children) -> tuple[ast.Import | ast.Pattern | ast.Extern, ...]:
        return _nodes(c, (ast.Import, ast.Pattern, ast.Extern))


class _Op(str):
    """An operator or mode made of one or two tokens."""

    __slots__ = ()


def _head(c: Children) -> Span:
    """The span of a compound statement: its first line, up to the colon or bracket."""
    end = next(
        (i for i, x in enumerate(c) if isinstance(x, Token) and (x == ":" or x.type == "_NL")),
        len(c),
    )
    return Span(_start(c[0]), next(_end(x) for x in reversed(c[:end]) if _sized(x)))


def _sized(child: Any) -> bool:
    return isinstance(child, Token | ast.Node)


def _clauses(c: Children) -> tuple[tuple[ast.Clause, ...], Span]:
    clauses: tuple[ast.Clause, ...] = c[2] if isinstance(c[2], tuple) else ()
    last = clauses[-1] if clauses else c[1]
    return clauses, Span(_start(c[0]), _end(last))
