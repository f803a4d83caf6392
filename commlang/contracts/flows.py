"""Flows: what an event does to data, as one contiguous region that acts on another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record

if TYPE_CHECKING:
    from commlang.contracts.actions import Action
    from commlang.program.columns import Array

EARLY, LATE = 0, 1
"""Within one event: what it takes in comes before what it puts out."""
PHASES = 2


@record
class Flows:
    """`length[i]` elements from `source[i]` act on as many from `target[i]`, as `code[i]` says.

    `when` orders flows; those of one moment touch different elements. `row` is the event that
    writes. `extra` is a number whose meaning depends on the code.
    """

    source: Array
    target: Array
    length: Array
    when: Array
    code: Array
    row: Array
    extra: Array

    def __len__(self) -> int:
        return len(self.source)


class Builder:
    """Collects flows and numbers actions."""

    def __init__(self) -> None:
        self.actions: list[Action] = []
        self._codes: dict[Action, int] = {}
        self._parts: list[tuple[Array, ...]] = []
        self._links: list[tuple[Array, Array, Array]] = []

    def code(self, action: Action) -> int:
        """The number of an action."""
        if action not in self._codes:
            self._codes[action] = len(self.actions)
            self.actions.append(action)
        return self._codes[action]

    def add(
        self,
        source: Array,
        target: Array,
        length: Array,
        level: Array,
        code: Array | int,
        row: Array,
        *,
        phase: int = EARLY,
        extra: Array | int = 0,
    ) -> None:
        """Add flows; those without elements are left out."""
        size = len(source)
        columns = (
            source,
            target,
            length,
            level * PHASES + phase,
            np.broadcast_to(np.asarray(code, dtype=np.int16), size),
            np.asarray(row, dtype=np.int32),
            np.broadcast_to(np.asarray(extra, dtype=np.uint64), size),
        )
        keep = length > 0
        self._parts.append(columns if keep.all() else tuple(c[keep] for c in columns))

    def link(self, one: Array, other: Array, length: Array) -> None:
        """Let regions be cut alike although nothing flows between them."""
        keep = (length > 0) & (one != other)
        self._links.append((one[keep], other[keep], length[keep]))

    def flows(self) -> Flows:
        """All flows."""
        empty = (*(np.zeros(0, dtype=np.int64) for _ in range(4)),)
        none = (*empty, *(np.zeros(0, dtype=d) for d in (np.int16, np.int32, np.uint64)))
        columns = [np.concatenate(parts) for parts in zip(none, *self._parts, strict=True)]
        self._parts = []
        return Flows(*columns)

    def links(self) -> tuple[Array, Array, Array]:
        """The pairs of regions that are to be cut alike, and their lengths."""
        none = (np.zeros(0, dtype=np.int64),) * 3
        a, b, c = (np.concatenate(parts) for parts in zip(none, *self._links, strict=True))
        return a, b, c
