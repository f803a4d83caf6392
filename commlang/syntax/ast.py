"""The syntax tree: frozen nodes, each with the span of its text.

Nodes compare and hash by identity, so that a node can key the table of what was learnt about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from commlang.records import entity

if TYPE_CHECKING:
    from fractions import Fraction

    from commlang.source import Span

# ---------------------------------------------------------------- expressions


@entity
class Node:
    """Anything with a place in the source."""

    __slots__: ClassVar[tuple[str, ...]]

    span: Span


@entity
class Name(Node):
    id: str


@entity
class Number(Node):
    """A literal; `unit` is "s" for a duration (value in seconds), else empty."""

    value: int | Fraction
    unit: Literal["", "s"]
    text: str


@entity
class String(Node):
    value: str


@entity
class Paren(Node):
    """Parentheses as written, kept for the formatter."""

    inner: Expr


@entity
class Attr(Node):
    base: Expr
    name: str


@entity
class Slice(Node):
    low: Expr | None
    high: Expr | None
    step: Expr | None


@entity
class Index(Node):
    base: Expr
    subs: tuple[Expr | Slice, ...]


@entity
class Keyword(Node):
    """`name=value` in a call, a preset or after a transfer."""

    name: str
    value: Expr


@entity
class Call(Node):
    func: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]


@entity
class Unary(Node):
    op: Literal["-", "+", "~", "not"]
    operand: Expr


@entity
class Binary(Node):
    op: str
    left: Expr
    right: Expr


@entity
class BoolOp(Node):
    op: Literal["and", "or"]
    operands: tuple[Expr, ...]


@entity
class Compare(Node):
    """`operands[0] ops[0] operands[1] ops[1] …`, as in Python."""

    ops: tuple[str, ...]
    operands: tuple[Expr, ...]


@entity
class Conditional(Node):
    test: Expr
    then: Expr
    other: Expr


@entity
class At(Node):
    """`value @ rank`: the value as that rank evaluates it."""

    value: Expr
    rank: Expr


@entity
class ListExpr(Node):
    items: tuple[Expr, ...]


@entity
class Target(Node):
    """A name bound by a loop, a `let` or a parameter list."""

    id: str


@entity
class Clause(Node):
    """`for targets in iterable if condition` of a comprehension or of a contract."""

    targets: tuple[Target, ...]
    iterable: Expr
    condition: Expr | None


@entity
class Comprehension(Node):
    """A list comprehension, or a generator as the argument of a call."""

    element: Expr
    clauses: tuple[Clause, ...]
    brackets: Literal["[]", "()", ""]


Expr: TypeAlias = (
    Name
    | Number
    | String
    | Paren
    | Attr
    | Index
    | Call
    | Unary
    | Binary
    | BoolOp
    | Compare
    | Conditional
    | At
    | ListExpr
    | Comprehension
)

# ----------------------------------------------------------------- statements


@entity
class Docstring(Node):
    value: str


@entity
class Require(Node):
    condition: Expr
    message: str | None


@entity
class Ensure(Node):
    condition: Expr
    clauses: tuple[Clause, ...]


@entity
class Assume(Node):
    condition: Expr
    clauses: tuple[Clause, ...]


@entity
class Cost(Node):
    value: Expr


@entity
class Preset(Node):
    name: str
    values: tuple[Keyword, ...]


@entity
class Mesh(Node):
    axes: tuple[Keyword, ...]


@entity
class Group(Node):
    target: Target
    value: Expr


@entity
class Let(Node):
    target: Target
    value: Expr


@entity
class LetFunction(Node):
    target: Target
    params: tuple[Target, ...]
    value: Expr


@entity
class TypeRef(Node):
    """A dtype or scalar type, with a shape for tensors and tables (None: a scalar)."""

    name: str
    shape: tuple[Expr, ...] | None


@entity
class Temp(Node):
    """`temp target: type`, or `temp target: like value`."""

    target: Target
    type: TypeRef | None
    like: Expr | None


@entity
class For(Node):
    targets: tuple[Target, ...]
    iterable: Expr
    body: tuple[Stmt, ...]


@entity
class Branch(Node):
    """One arm of an `if`; `condition` is None for `else`."""

    condition: Expr | None
    body: tuple[Stmt, ...]


@entity
class If(Node):
    branches: tuple[Branch, ...]


@entity
class Parallel(Node):
    """`parallel:`, or `parallel for targets in iterable:` when targets are given."""

    targets: tuple[Target, ...]
    iterable: Expr | None
    body: tuple[Stmt, ...]


@entity
class Sequence(Node):
    body: tuple[Stmt, ...]


@entity
class Pass(Node):
    pass


@entity
class Place(Node):
    """One end of a transfer: a value, on a named rank or on the rank that runs the line."""

    value: Expr
    rank: Expr | None


@entity
class Transfer(Node):
    source: Place
    target: Place
    keywords: tuple[Keyword, ...]


@entity
class CallStatement(Node):
    call: Call


@entity
class Async(Node):
    """`handle = async operation`."""

    handle: Name | Index
    operation: CallStatement | Transfer


@entity
class Wait(Node):
    handle: Expr


Stmt: TypeAlias = (
    Require
    | Ensure
    | Assume
    | Cost
    | Preset
    | Mesh
    | Group
    | Let
    | LetFunction
    | Temp
    | For
    | If
    | Parallel
    | Sequence
    | Pass
    | Transfer
    | CallStatement
    | Async
    | Wait
)

# --------------------------------------------------------------------- module

Mode: TypeAlias = Literal["read", "write", "update"]


@entity
class Param(Node):
    target: Target
    mode: Mode | None
    type: TypeRef | None
    default: Expr | None


@entity
class ImportName(Node):
    name: str
    alias: Target


@entity
class Import(Node):
    """`from path import names`; `level` counts the leading dots."""

    level: int
    path: tuple[str, ...]
    names: tuple[ImportName, ...]


@entity
class Pattern(Node):
    target: Target
    params: tuple[Param, ...]
    doc: Docstring | None
    body: tuple[Stmt, ...]

    @property
    def name(self) -> str:
        return self.target.id


@entity
class Extern(Node):
    target: Target
    params: tuple[Param, ...]
    doc: Docstring | None
    body: tuple[Stmt, ...]

    @property
    def name(self) -> str:
        return self.target.id


@entity
class Comment(Node):
    """A comment with its `#`; `alone` tells that it has the line to itself."""

    text: str
    alone: bool


@entity
class Module(Node):
    items: tuple[Import | Pattern | Extern, ...]
    comments: tuple[Comment, ...]
