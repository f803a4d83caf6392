"""What a pattern binds, and what of it is used: what the rules on names share."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from commlang.syntax import ast
from commlang.syntax.walk import children

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.source import Span


class Kind(StrEnum):
    """What binds a name, in the words of messages."""

    PARAMETER = "parameter"
    TEMP = "temp"
    GROUP = "group"
    MESH = "mesh axis"
    LET = "`let`"
    FUNCTION = "`let` function"
    LOOP = "loop variable"
    INNER = "variable of an expression"


@dataclass(slots=True)
class Binding:
    """A name that a pattern binds; `shadows` is what it hides from the rest of its block.

    The axes of a mesh share a `node`: one of them is never declared alone.
    """

    name: str
    span: Span
    kind: Kind
    node: ast.Node
    shadows: Binding | None = None
    used: bool = False


@dataclass(slots=True)
class _Scope:
    parent: _Scope | None = None
    names: dict[str, Binding] = field(default_factory=dict[str, Binding])

    def find(self, name: str) -> Binding | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


def bindings(pattern: ast.Pattern) -> list[Binding]:
    """All that a pattern without static faults binds, in the order of its text."""
    reader = _Reader()
    scope = _Scope()
    for param in pattern.params:
        reader.bind(scope, param.target.id, param.target.span, Kind.PARAMETER, param)
    for param in pattern.params:
        for part in (param.type, param.default):
            reader.use(part, scope)
    reader.block(pattern.body, scope)
    return reader.found


class _Reader:
    """Follows the scopes of the language: a name is visible after its statement, in its block.

    Handles are names of a kind of their own and are left out, but for what their indices use.
    """

    def __init__(self) -> None:
        self.found: list[Binding] = []

    def bind(self, scope: _Scope, name: str, span: Span, kind: Kind, node: ast.Node) -> None:
        binding = Binding(name, span, kind, node, scope.find(name))
        scope.names[name] = binding
        self.found.append(binding)

    def targets(self, targets: Iterable[ast.Target], kind: Kind, scope: _Scope) -> None:
        for target in targets:
            self.bind(scope, target.id, target.span, kind, target)

    def block(self, body: Iterable[ast.Stmt], scope: _Scope) -> None:
        for statement in body:
            self.statement(statement, scope)

    def statement(self, node: ast.Stmt, scope: _Scope) -> None:
        match node:
            case ast.Preset():
                pass  # its names are those of parameters, its values constants
            case ast.Mesh(_, axes):
                for axis in axes:
                    self.use(axis.value, scope)
                for axis in axes:
                    self.bind(scope, axis.name, axis.span, Kind.MESH, node)
            case ast.Group(_, target, value):
                self.use(value, scope)
                self.bind(scope, target.id, target.span, Kind.GROUP, node)
            case ast.Let(_, target, value):
                self.use(value, scope)
                self.bind(scope, target.id, target.span, Kind.LET, node)
            case ast.LetFunction(_, target, params, value):
                inner = _Scope(scope)
                self.targets(params, Kind.INNER, inner)
                self.use(value, inner)
                self.bind(scope, target.id, target.span, Kind.FUNCTION, node)
            case ast.Temp(_, target, type_, like):
                self.use(type_, scope)
                self.use(like, scope)
                self.bind(scope, target.id, target.span, Kind.TEMP, node)
            case ast.For(_, targets, iterable, body) | ast.Parallel(_, targets, iterable, body):
                self.use(iterable, scope)
                inner = _Scope(scope)
                self.targets(targets, Kind.LOOP, inner)
                self.block(body, inner)
            case ast.Sequence(_, body):
                self.block(body, _Scope(scope))
            case ast.If(_, branches):
                for branch in branches:
                    self.use(branch.condition, scope)
                    self.block(branch.body, _Scope(scope))
            case ast.Ensure(_, condition, clauses) | ast.Assume(_, condition, clauses):
                self.use(condition, self.clauses(clauses, scope))
            case ast.Async(_, handle, operation):
                self.indices(handle, scope)
                self.use(operation, scope)
            case ast.Wait(_, handle):
                self.indices(handle, scope)
            case _:
                self.use(node, scope)

    def indices(self, node: ast.Expr, scope: _Scope) -> None:
        """What the indices of a handle use."""
        match node:
            case ast.Paren(_, inner):
                self.indices(inner, scope)
            case ast.Index(_, base, subs):
                self.indices(base, scope)
                for sub in subs:
                    self.use(sub, scope)
            case _:
                pass

    def clauses(self, clauses: Iterable[ast.Clause], scope: _Scope) -> _Scope:
        for clause in clauses:
            self.use(clause.iterable, scope)
            scope = _Scope(scope)
            self.targets(clause.targets, Kind.INNER, scope)
            self.use(clause.condition, scope)
        return scope

    def use(self, node: ast.Node | None, scope: _Scope) -> None:
        """Mark what an expression, a type or a simple statement names."""
        match node:
            case None:
                return
            case ast.Comprehension(_, element, clauses):
                self.use(element, self.clauses(clauses, scope))
                return
            case ast.Name(_, name) | ast.TypeRef(_, name):
                binding = scope.find(name)
                if binding is not None:
                    binding.used = True
            case _:
                pass
        for child in children(node):
            self.use(child, scope)


def unused(pattern: ast.Pattern, kinds: frozenset[Kind]) -> list[Binding]:
    """Bindings of these kinds that nothing names; those that begin with `_` are meant to be."""
    return [
        binding
        for binding in bindings(pattern)
        if binding.kind in kinds and not binding.used and not binding.name.startswith("_")
    ]
