"""The syntax tree: frozen nodes, each with the span of its text.

Nodes compare and hash by identity, so that a node can key the table of what was learnt about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction

    from commlang.source import Span

# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Anything with a place in the source."""

    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Name(Node):
    id: str


@dataclass(frozen=True, slots=True, eq=False)
class Number(Node):
    """A literal; `unit` is "s" for a duration (value in seconds), else empty."""

    value: int | Fraction
    unit: Literal["", "s"]
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class String(Node):
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Paren(Node):
    """Parentheses as written, kept for the formatter."""

    inner: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Attr(Node):
    base: Expr
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Slice(Node):
    low: Expr | None
    high: Expr | None
    step: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Index(Node):
    base: Expr
    subs: tuple[Expr | Slice, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Keyword(Node):
    """`name=value` in a call, a preset or after a transfer."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    func: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Node):
    op: Literal["-", "+", "~", "not"]
    operand: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Node):
    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class BoolOp(Node):
    op: Literal["and", "or"]
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Node):
    """`operands[0] ops[0] operands[1] ops[1] …`, as in Python."""

    ops: tuple[str, ...]
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Node):
    test: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True, eq=False)
class At(Node):
    """`value @ rank`: the value as that rank evaluates it."""

    value: Expr
    rank: Expr


@dataclass(frozen=True, slots=True, eq=False)
class ListExpr(Node):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Target(Node):
    """A name bound by a loop, a `let` or a parameter list."""

    id: str


@dataclass(frozen=True, slots=True, eq=False)
class Clause(Node):
    """`for targets in iterable if condition` of a comprehension or of a contract."""

    targets: tuple[Target, ...]
    iterable: Expr
    condition: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Docstring(Node):
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Require(Node):
    condition: Expr
    message: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Ensure(Node):
    condition: Expr
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Assume(Node):
    condition: Expr
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Cost(Node):
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Preset(Node):
    name: str
    values: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Mesh(Node):
    axes: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Group(Node):
    target: Target
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Let(Node):
    target: Target
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class LetFunction(Node):
    target: Target
    params: tuple[Target, ...]
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class TypeRef(Node):
    """A dtype or scalar type, with a shape for tensors and tables (None: a scalar)."""

    name: str
    shape: tuple[Expr, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Temp(Node):
    """`temp target: type`, or `temp target: like value`."""

    target: Target
    type: TypeRef | None
    like: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class For(Node):
    targets: tuple[Target, ...]
    iterable: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Branch(Node):
    """One arm of an `if`; `condition` is None for `else`."""

    condition: Expr | None
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class If(Node):
    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Parallel(Node):
    """`parallel:`, or `parallel for targets in iterable:` when targets are given."""

    targets: tuple[Target, ...]
    iterable: Expr | None
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Sequence(Node):
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pass(Node):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Place(Node):
    """One end of a transfer: a value, on a named rank or on the rank that runs the line."""

    value: Expr
    rank: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Transfer(Node):
    source: Place
    target: Place
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CallStatement(Node):
    call: Call


@dataclass(frozen=True, slots=True, eq=False)
class Async(Node):
    """`handle = async operation`."""

    handle: Name | Index
    operation: CallStatement | Transfer


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Param(Node):
    target: Target
    mode: Mode | None
    type: TypeRef | None
    default: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class ImportName(Node):
    name: str
    alias: Target


@dataclass(frozen=True, slots=True, eq=False)
class Import(Node):
    """`from path import names`; `level` counts the leading dots."""

    level: int
    path: tuple[str, ...]
    names: tuple[ImportName, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pattern(Node):
    target: Target
    params: tuple[Param, ...]
    doc: Docstring | None
    body: tuple[Stmt, ...]

    @property
    def name(self) -> str:
        return self.target.id


@dataclass(frozen=True, slots=True, eq=False)
class Extern(Node):
    target: Target
    params: tuple[Param, ...]
    doc: Docstring | None
    body: tuple[Stmt, ...]

    @property
    def name(self) -> str:
        return self.target.id


@dataclass(frozen=True, slots=True, eq=False)
class Comment(Node):
    """A comment with its `#`; `alone` tells that it has the line to itself."""

    text: str
    alone: bool


@dataclass(frozen=True, slots=True, eq=False)
class Module(Node):
    items: tuple[Import | Pattern | Extern, ...]
    comments: tuple[Comment, ...]
