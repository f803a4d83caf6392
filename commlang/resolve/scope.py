"""Which names are visible at a place, and what may stand there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.resolve.kinds import Type
    from commlang.source import Span


@record
class Binding:
    """What a name stands for; `word` says in messages what bound it."""

    type: Type
    span: Span
    word: str


@dataclass(slots=True)
class Scope:
    """The names of one block, inside those of the blocks around it.

    `contract` tells that values of other ranks and times may be named (`ensure`, `assume`);
    `parallel` that a `parallel:` encloses the place; `deferred` that it is the body of a `let`
    function, which a contract may call.
    """

    parent: Scope | None = None
    contract: bool = False
    parallel: bool = False
    deferred: bool = False
    names: dict[str, Binding] = field(default_factory=dict[str, "Binding"])

    def child(
        self, *, contract: bool = False, parallel: bool = False, deferred: bool = False
    ) -> Scope:
        """A scope for a block or comprehension inside this one."""
        return Scope(
            self,
            self.contract or contract,
            self.parallel or parallel,
            self.deferred or deferred,
        )

    def find(self, name: str) -> Binding | None:
        """What the nearest enclosing block binds the name to."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def visible(self) -> Iterator[str]:
        """Every bound name that can be used here."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent
