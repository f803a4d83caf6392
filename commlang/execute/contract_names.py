"""What contracts read, told from their text: whose final values a rank must be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.expand.binding import is_tensor
from commlang.syntax import ast
from commlang.syntax.walk import children

if TYPE_CHECKING:
    from commlang.resolve.modules import Definition

_NONE: frozenset[str] = frozenset()


def needs_final(definition: Definition) -> frozenset[str]:
    """The tensors whose values at the end, on other ranks, some `ensure` may read.

    They are those that stand in the E of an `E @ r` and outside `old(…)`, also by way of a `let`.
    """
    reader = _Reader(definition)
    for statement in definition.node.body:
        if isinstance(statement, ast.Ensure):
            reader.read(statement, away=False, bound=_NONE)
    return frozenset(reader.found)


class _Reader:
    def __init__(self, definition: Definition) -> None:
        self.tensors = {p.target.id for p in definition.node.params if is_tensor(p)}
        self.lets = {
            s.target.id: s
            for s in definition.node.body
            if isinstance(s, ast.Let | ast.LetFunction | ast.Group)
        }
        self.found: set[str] = set()
        self._followed: set[tuple[str, bool]] = set()

    def read(self, node: ast.Node, *, away: bool, bound: frozenset[str]) -> None:
        """Note what a node reads; `away` tells that another rank may evaluate it."""
        match node:
            case ast.Name(_, name):
                self._name(name, away, bound)
            case ast.Call(_, ast.Name(_, "old")) if "old" not in bound | self.lets.keys():
                pass
            case ast.At(_, value, rank):
                self.read(value, away=True, bound=bound)
                self.read(rank, away=away, bound=bound)
            case ast.Comprehension(_, element, clauses):
                self._clauses(element, clauses, away, bound)
            case ast.Ensure(_, condition, clauses):
                self._clauses(condition, clauses, away, bound)
            case _:
                for child in children(node):
                    self.read(child, away=away, bound=bound)

    def _clauses(
        self, element: ast.Expr, clauses: tuple[ast.Clause, ...], away: bool, bound: frozenset[str]
    ) -> None:
        for clause in clauses:
            self.read(clause.iterable, away=away, bound=bound)
            bound |= {target.id for target in clause.targets}
            if clause.condition is not None:
                self.read(clause.condition, away=away, bound=bound)
        self.read(element, away=away, bound=bound)

    def _name(self, name: str, away: bool, bound: frozenset[str]) -> None:
        if name in bound:
            return
        if away and name in self.tensors:
            self.found.add(name)
        let = self.lets.get(name)
        if let is None or (name, away) in self._followed:
            return
        self._followed.add((name, away))
        params = frozenset(p.id for p in let.params) if isinstance(let, ast.LetFunction) else _NONE
        self.read(let.value, away=away, bound=params)
