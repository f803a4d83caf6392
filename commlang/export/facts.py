"""What expanding a pattern tells about its text: what ran, and what kinds of values stood where."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.expand import arrays
from commlang.expand.run import expand
from commlang.expand.statements import Evaluator
from commlang.expand.values import SEQUENCES, Chunks, Group, Value, View
from commlang.operations import Kind

if TYPE_CHECKING:
    from commlang.expand.arrays import Int
    from commlang.expand.record import Handle, Nest, Operand, Recording
    from commlang.expand.scope import Scope
    from commlang.expand.values import Function
    from commlang.program import Program
    from commlang.resolve.modules import Definition
    from commlang.syntax import ast

FRACTION, INT, TENSOR, STRIDED, CHUNKS, GROUP, LIST = (
    *("fraction", "int", "tensor", "strided", "chunks", "group", "list"),
)


@dataclass(slots=True)
class Facts:
    """What holds of the nodes of a pattern's text on any rank, in any call."""

    ran: set[ast.Node] = field(default_factory=set["ast.Node"])
    """Statements that ran at all."""
    kinds: dict[ast.Node, set[str]] = field(default_factory=dict["ast.Node", set[str]])
    """The kinds of the values of an expression."""
    integers: set[ast.Node] = field(default_factory=set["ast.Node"])
    """Expressions of which an int was wanted."""
    applied: set[ast.Node] = field(default_factory=set["ast.Node"])
    """`let` functions that were called."""
    reshaped: set[ast.Node] = field(default_factory=set["ast.Node"])
    """Collectives whose tensors do not have the shapes that torch asks for."""
    cast: set[ast.Node] = field(default_factory=set["ast.Node"])
    """Accumulations between dtypes."""
    uneven: set[str] = field(default_factory=set[str])
    """Names of list collectives whose entries differ in length somewhere."""
    externs: list[Definition] = field(default_factory=list["Definition"])
    """Externs that were called, in order."""
    patterns: list[Definition] = field(default_factory=list["Definition"])
    """Patterns that were called, in order."""
    frames: set[int] = field(default_factory=set[int])
    """Numbers of the groups that patterns ran on."""

    def of(self, node: ast.Node) -> set[str]:
        """The kinds of values that an expression had."""
        return self.kinds.get(node, set())


class Observer(Evaluator):
    """An evaluator that keeps what it learns about the text."""

    def __init__(self, recording: Recording, max_events: int) -> None:
        super().__init__(recording, max_events)
        self.facts = Facts()

    def _statement(self, node: ast.Stmt, scope: Scope, nest: Nest | None) -> None:
        self.facts.ran.add(node)
        super()._statement(node, scope, nest)

    def _eval(self, node: ast.Expr, scope: Scope) -> Value:
        value = super()._eval(node, scope)
        self.facts.kinds.setdefault(node, set()).update(_kinds(value))
        return value

    def integer(self, node: ast.Expr, scope: Scope, what: str) -> Int:
        self.facts.integers.add(node)
        return super().integer(node, scope, what)

    def _apply(self, node: ast.Call, function: Function, scope: Scope) -> Value:
        self.facts.applied.add(function.node)
        return super()._apply(node, function, scope)

    def enter(self, inner: Scope, ranks: Group) -> None:
        self.facts.frames.update(np.unique(ranks.gid).tolist())
        super().enter(inner, ranks)

    def _pattern(
        self, call: ast.Call, definition: Definition, scope: Scope, nest: Nest | None
    ) -> None:
        if definition not in self.facts.patterns:
            self.facts.patterns.append(definition)
        super()._pattern(call, definition, scope, nest)

    def emit(
        self,
        scope: Scope,
        nest: Nest | None,
        kind: Kind,
        name: str,
        node: ast.Node,
        *,
        handle: Handle | None = None,
        arguments: tuple[tuple[str, Any], ...] = (),
        extern: Definition | None = None,
        **columns: Any,
    ) -> None:
        operands: tuple[Operand, ...] = columns.get("operands", ())
        if extern is not None and extern not in self.facts.externs:
            self.facts.externs.append(extern)
        if kind is Kind.ACCUMULATE and operands[0].view.dtype != operands[1].view.dtype:
            self.facts.cast.add(node)
        if kind.is_collective and len(operands) > 1:
            if not _as_torch_wants(name, *operands):
                self.facts.reshaped.add(node)
            listed = [operand for operand in operands if operand.count is not None]
            if name in _LISTED and not _alike([o.view.numel for o in listed]):
                self.facts.uneven.add(name)
        super().emit(
            scope,
            nest,
            kind,
            name,
            node,
            handle=handle,
            arguments=arguments,
            extern=extern,
            **columns,
        )


_LISTED = ("all_gather", "reduce_scatter", "all_to_all")


def observe(program: Program, max_events: int) -> Facts:
    """Expand the pattern of a program once more, and watch."""
    observers: list[Observer] = []

    def evaluator(recording: Recording, limit: int) -> Observer:
        observers.append(Observer(recording, limit))
        return observers[0]

    values, shapes = program.values, program.shapes
    expand(
        program.definition,
        program.world,
        values,
        shapes=shapes,
        max_events=max_events,
        evaluator_of=evaluator,
    )
    return observers[0].facts


def _kinds(value: Value) -> set[str]:
    match value:
        case View():
            return {TENSOR} if arrays.everywhere(value.contiguous()) else {TENSOR, STRIDED}
        case Chunks():
            return {CHUNKS}
        case Group():
            return {GROUP}
        case Fraction():
            return {FRACTION}
        case _ if isinstance(value, SEQUENCES):
            return {LIST}
        case _ if arrays.is_real(value):
            return {FRACTION}
        case _:
            return {INT} if arrays.is_int(value) else set()


def _as_torch_wants(name: str, one: Operand, other: Operand) -> bool:
    """Whether the shapes of two operands are those that torch takes them in."""
    if name == "all_to_all_single":
        return True
    if one.count is not None or other.count is not None:
        return _alike(list(one.view.shape), list(other.view.shape))
    large, small = (one, other) if name.startswith("all_gather") else (other, one)
    whole, part = large.view.shape, small.view.shape
    return len(whole) == len(part) > 0 and _alike(list(whole[1:]), list(part[1:]))


def _alike(one: list[Int], other: list[Int] | None = None) -> bool:
    """Whether two shapes are equal on all lanes, or all of some sizes."""
    if other is not None and len(one) != len(other):
        return False
    pairs = zip(one, other, strict=True) if other is not None else ((one[0], n) for n in one)
    return all(_same(a, b) for a, b in pairs)


def _same(a: Int, b: Int) -> bool:
    """Whether two columns of sizes, perhaps of other lengths, hold one and the same number."""
    numbers = {int(n) for value in (a, b) for n in np.unique(value)}
    return len(numbers) <= 1
