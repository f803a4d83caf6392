"""Scopes: the lanes that a block of statements runs on, and the names bound there.

Lanes of a scope are a selection of the lanes of the scope around it (`if` narrows them, a loop
repeats them once per iteration). A scope also knows where its statements stand in program order:
each statement takes a slot of its block, a block's slots are repeated per iteration, and the key
of an event is the resulting position. Strides are known only after a body has been evaluated, so
keys are read from the scopes at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from commlang.expand import arrays
from commlang.expand.values import Value, take

if TYPE_CHECKING:
    from commlang.expand.arrays import Array, Int
    from commlang.expand.values import Group
    from commlang.resolve.modules import Definition, Module
    from commlang.syntax import ast


@dataclass(eq=False)
class Frame:
    """One call of a pattern: its group and where the call stands."""

    definition: Definition
    ranks: Group
    """The group of the pattern, aligned with the lanes of the frame's outermost scope."""
    path: tuple[ast.Node, ...]
    """The calls that led here, outermost first."""
    handles: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def module(self) -> Module:
        return self.definition.module


class Scope:
    """A block being evaluated. `up` maps its lanes to those of `outer` (None: the same lanes)."""

    def __init__(
        self,
        frame: Frame,
        lanes: int,
        outer: Scope | None,
        up: Array | None,
        *,
        lexical: Scope | None = None,
        iteration: Int = 0,
        first: int = 0,
        instances: int = 1,
        targets: tuple[str, ...] = (),
    ) -> None:
        self.frame = frame
        self.lanes = lanes
        self.outer = outer
        self.up = up
        self.lexical = lexical
        self.iteration = iteration
        self.first = first
        """The first of the iterations that are evaluated at once."""
        self.instances = instances
        """How many iterations of all loops around are evaluated at once."""
        self.targets = targets
        self.vars: dict[str, Value] = {}
        self.slots = 0
        """Slots given out so far to the statements of the block."""
        self.position = outer.slots if outer else 0
        """The slot of the block in the block around it."""
        self.stride = 0
        """Slots of one iteration, set when the whole loop has been evaluated."""
        self._cache: dict[str, Value] = {}
        self._maps: dict[int, Array | None] = {}
        self._base: Int | None = None
        self._ranks: Array | None = None

    # ------------------------------------------------------------------ names

    def bind(self, name: str, value: Value) -> None:
        """Bind a name in this block."""
        self.vars[name] = value
        self._cache.pop(name, None)

    def lookup(self, name: str) -> Value:
        """The value of a name on this scope's lanes; raises KeyError if it is unbound."""
        if name in self.vars:
            return self.vars[name]
        if name in self._cache:
            return self._cache[name]
        scope: Scope = self
        while name not in scope.vars:
            if scope.lexical is None:
                raise KeyError(name)
            scope = scope.lexical
        value = self.lift(scope.vars[name], scope)
        self._cache[name] = value
        return value

    def visible(self) -> list[str]:
        """Every name bound here or around."""
        names: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            names += scope.vars
            scope = scope.lexical
        return names

    def lift(self, value: Value, scope: Scope) -> Value:
        """A value of an enclosing scope on this scope's lanes."""
        index = self.map_to(scope)
        return value if index is None else take(value, index)

    def map_to(self, scope: Scope) -> Array | None:
        """For each lane, its lane in an enclosing scope (None: the same)."""
        if scope is self:
            return None
        key = id(scope)
        if key not in self._maps:
            outer = self.outer
            assert outer is not None, "the scope is not around this one"
            above = outer.map_to(scope)
            if above is None:
                self._maps[key] = self.up
            else:
                self._maps[key] = above if self.up is None else above[self.up]
        return self._maps[key]

    def close(self) -> None:
        """Drop the values: the block has been evaluated; only its place in the order matters."""
        self.vars.clear()
        self._cache.clear()

    # -------------------------------------------------------------- structure

    def narrow(self, index: Array) -> Scope:
        """A block that runs on some of the lanes."""
        return Scope(self.frame, len(index), self, index, lexical=self, instances=self.instances)

    def inner(self) -> Scope:
        """A block that runs on the same lanes."""
        return Scope(self.frame, self.lanes, self, None, lexical=self, instances=self.instances)

    def take_slot(self) -> int:
        """The slot of the next statement."""
        self.slots += 1
        return self.slots - 1

    @property
    def ranks(self) -> Array:
        """Per lane, its rank in the world."""
        if self._ranks is None:
            assert self.outer is not None
            above = self.outer.ranks
            self._ranks = above if self.up is None else above[self.up]
        return self._ranks

    @ranks.setter
    def ranks(self, ranks: Array) -> None:
        self._ranks = ranks

    @property
    def instance(self) -> Int:
        """Per lane, a number that is the same for the ranks of one iteration and differs between
        the iterations evaluated at once; it is below `instances`."""
        if self.outer is None:
            return 0
        above = self.outer.instance
        if self.up is not None and isinstance(above, np.ndarray):
            above = above[self.up]
        per_loop = self.instances // self.outer.instances
        if per_loop == 1:
            return above
        return above * per_loop + (self.iteration - self.first)

    def base(self) -> Int:
        """Per lane, the key at which this block (in this iteration) starts."""
        if self._base is None:
            if self.outer is None:
                self._base = 0
            else:
                above = self.outer.base()
                if self.up is not None and isinstance(above, np.ndarray):
                    above = above[self.up]
                self._base = above + self.position + self.iteration * self.stride
        return self._base

    def key_of(self, scope: Scope, offset: int) -> Int:
        """On this scope's lanes, the key of slot `offset` of an enclosing scope."""
        base = scope.base()
        index = self.map_to(scope)
        if index is not None and isinstance(base, np.ndarray):
            base = base[index]
        return base + offset

    def context(self, lane: int) -> list[tuple[str, object]]:
        """The loop variables of one lane, outermost first."""
        names: list[tuple[str, object]] = []
        scope: Scope | None = self
        while scope is not None:
            here = [(n, arrays.lane(scope.vars[n], lane)) for n in scope.targets if n in scope.vars]
            names = [(n, v) for n, v in here if isinstance(v, int | bool)] + names
            if scope.up is not None:
                lane = int(scope.up[lane])
            scope = scope.outer
        return names
