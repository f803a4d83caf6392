"""Scopes of contracts: the same lanes, seen from other ranks or at the pattern's entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.expand.scope import Scope
from commlang.expand.values import SEQUENCES, Chunks, Items, Ragged, Sliced, Value, View, Zipped
from commlang.records import record

if TYPE_CHECKING:
    from commlang.expand.arrays import Array


@record
class Pinned:
    """Stands for a loop variable that is a tensor, seen from another rank or time."""

    name: str


class Elsewhere(Scope):
    """The lanes of `around` as lanes of `root`, which has one lane for each rank.

    Names bound by the pattern are those of `ranks` in `root`; loop variables keep their values.
    """

    def __init__(self, around: Scope, root: Scope, ranks: Array) -> None:
        super().__init__(around.frame, around.lanes, around, None, lexical=root)
        self.root = root
        self.ranks = ranks
        for name in loop_variables(around):
            value = around.lookup(name)
            self.bind(name, Pinned(name) if holds_tensor(value) else value)

    def map_to(self, scope: Scope) -> Array | None:
        """For each lane, its lane in an enclosing scope (None: the same)."""
        return self.ranks if scope is self.root else super().map_to(scope)


def root_of(scope: Scope) -> Scope:
    """The scope of the pattern's own bindings that a scope sees."""
    while scope.lexical is not None:
        scope = scope.lexical
    return scope


def loop_variables(scope: Scope) -> list[str]:
    """The names that are bound between a scope and the pattern's own."""
    names: dict[str, None] = {}
    while scope.lexical is not None:
        names.update(dict.fromkeys(scope.vars))
        scope = scope.lexical
    return list(names)


def holds_tensor(value: Value) -> bool:
    """Whether a value is a tensor or a list of them."""
    match value:
        case View() | Chunks():
            return True
        case Items(items) | Zipped(items):
            return any(holds_tensor(item) for item in items)
        case Ragged(flat):
            return holds_tensor(flat)
        case Sliced(base):
            return holds_tensor(base)
        case _:
            return False


def lists_tensors(value: Value) -> bool:
    """Whether a value is a list of tensors."""
    return isinstance(value, SEQUENCES) and holds_tensor(value)
