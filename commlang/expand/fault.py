"""Faults found while a pattern is evaluated, located and told for one rank and iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from commlang.diagnostics import Diagnostic, Label
from commlang.errors import PatternError
from commlang.expand import arrays

if TYPE_CHECKING:
    from commlang.expand.arrays import Bool
    from commlang.expand.scope import Scope
    from commlang.syntax import ast


def fail(
    scope: Scope,
    node: ast.Node,
    code: str,
    message: str,
    *,
    lanes: Bool = True,
    hint: str | None = None,
) -> NoReturn:
    """Raise PatternError at a node, naming the first of the `lanes` on which the fault stands."""
    source = scope.frame.module.source
    notes: list[str] = []
    if scope.lanes:
        everyone = not isinstance(lanes, np.ndarray)
        notes.append(lane_context(scope, arrays.first_lane(lanes), everyone=everyone))
    notes += call_notes(scope)
    labels = (Label(source, node.span),)
    raise PatternError([Diagnostic(code, message, labels, tuple(n for n in notes if n), hint)])


def lane_context(scope: Scope, lane: int, *, everyone: bool) -> str:
    """`on rank 3, s = 5`: which lane it is, in the pattern's terms."""
    variables = [f"{name} = {value}" for name, value in scope.context(lane)]
    if everyone and scope.lanes > 1 and not variables:
        return ""
    rank = int(scope.ranks[lane])
    return ", ".join([f"on rank {rank}", *variables])


def call_notes(scope: Scope) -> list[str]:
    """`in a call of …` for each call that led to the scope, innermost first."""
    notes: list[str] = []
    frame = scope.frame
    current: Scope | None = scope
    while current is not None and frame.path:
        if current.frame is not frame:
            source = current.frame.module.source
            notes.append(f"called from {source.where(frame.path[-1].span)}")
            frame = current.frame
        current = current.outer
    return notes[:8]
