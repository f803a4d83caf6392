"""What the evaluator writes down: one chunk of events per statement and set of lanes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commlang.expand import arrays
from commlang.expand.values import View, row_major
from commlang.records import record

if TYPE_CHECKING:
    import numpy as np

    from commlang.dtypes import DType
    from commlang.expand.arrays import Int
    from commlang.expand.groups import GroupTable
    from commlang.expand.scope import Frame, Scope
    from commlang.expand.values import Op
    from commlang.operations import Access, Kind
    from commlang.resolve.modules import Definition
    from commlang.source import Source, Span
    from commlang.syntax import ast


@record
class Site:
    """What all events of one statement have in common.

    `arguments` are further values (a factor, a duration, an extern's ints): each is the value
    itself, or a `Column` where it differs between events.
    """

    kind: Kind
    name: str
    span: Span
    source: Source
    path: tuple[ast.Node, ...]
    op: Op | None = None
    dtype: DType | None = None
    asynchronous: bool = False
    arguments: tuple[tuple[str, Any], ...] = ()
    extern: Definition | None = None
    handle: str | None = None

    def where(self) -> str:
        """`path:line:column` of the statement."""
        return self.source.where(self.span)


@record
class Column:
    """An argument kept per event: the index-th number of the event's numbers."""

    index: int
    real: bool = False
    """Whether the number is the bits of a float64."""


@dataclass(eq=False, slots=True)
class Nest:
    """A `parallel:` or a `sequence:` inside one, as the place of its first slot."""

    scope: Scope
    position: int
    parent: Nest | None
    sequence: bool
    slots: int = 0
    """Slots that the whole construct takes, set when it has been evaluated."""


@record
class Handle:
    """The handle that an async operation binds, or that a wait joins (all, without indices)."""

    frame: Scope
    name: str
    indices: tuple[Int, ...] | None


@record
class Operand:
    """Data of each event: `count` views per lane (None: exactly one), flat in `view`."""

    view: View
    access: Access
    count: Int | None = None
    shaped: bool = False
    """Whether the event needs the view's shape, not just its elements in order."""


@dataclass(eq=False, slots=True)
class Chunk:
    """The events of one statement on the lanes of one scope."""

    scope: Scope
    site: int
    position: int
    nest: Nest | None
    deferred: Nest | None = None
    """A construct after whose end the events stand (accumulations of parallel transfers)."""
    peer: Int = -1
    tag: Int = 0
    group: Int = -1
    operands: tuple[Operand, ...] = ()
    numbers: tuple[Int, ...] = ()
    handle: Handle | None = None

    def key(self) -> arrays.Array:
        """Per lane, the place of the event in program order."""
        offset = self.position + (self.deferred.slots if self.deferred else 0)
        return arrays.broadcast(self.scope.key_of(self.scope, offset), self.scope.lanes)


@record
class BufferBlock:
    """The buffers of one declaration: one per iteration, numbered from `base`.

    `storage` numbers the memory: iterations reuse it unless they run side by side (`distinct`).
    `capacity` is the largest number of elements on any rank. `scope` is the block that a temp
    lives in, None for a parameter.
    """

    base: int
    count: int
    name: str
    dtype: DType
    span: Span
    source: Source
    storage: int
    distinct: bool
    capacity: int
    scope: Scope | None
    shape: tuple[Int, ...]


@dataclass(eq=False)
class Recording:
    """Everything that expanding a pattern found out."""

    world: int
    ranks: np.ndarray[Any, np.dtype[np.int64]]
    """The ranks that were evaluated: all of the world, or some of it."""
    groups: GroupTable
    definition: Definition
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    """What was asked for: parameters and shapes, to expand again for one rank."""
    shapes: dict[str, Any] = field(default_factory=dict[str, Any])
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    tensors: dict[str, View] = field(default_factory=dict[str, View])
    """The tensor parameters, by name, as views on the lanes of the ranks."""
    sites: list[Site] = field(default_factory=list[Site])
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    buffers: list[BufferBlock] = field(default_factory=list[BufferBlock])
    events: int = 0
    slots: int = 0
    """How many keys the program order has, set at the end."""
    _sites: dict[Site, int] = field(default_factory=dict["Site", int])
    _storages: dict[Any, int] = field(default_factory=dict[Any, int])

    def site(self, site: Site) -> int:
        """The number of a site."""
        number = self._sites.get(site)
        if number is None:
            number = self._sites[site] = len(self.sites)
            self.sites.append(site)
        return number

    def add(self, chunk: Chunk) -> None:
        """Write down a chunk of events."""
        self.chunks.append(chunk)
        self.events += chunk.scope.lanes

    def allocate(
        self,
        name: str,
        dtype: DType,
        shape: tuple[Int, ...],
        node: ast.Node,
        scope: Scope,
        *,
        block: Scope | None,
        distinct: bool,
        frame: Frame,
    ) -> View:
        """New buffers of a shape, one per iteration in which the scope's lanes stand."""
        base = self.buffers[-1].base + self.buffers[-1].count if self.buffers else 0
        storage = self._storages.setdefault((id(node), frame.path), len(self._storages))
        numel: Int = 1
        for dim in shape:
            numel = arrays.multiply(numel, dim)
        source = frame.module.source
        self.buffers.append(
            BufferBlock(
                base,
                scope.instances,
                name,
                dtype,
                node.span,
                source,
                storage,
                distinct,
                arrays.top(numel),
                block,
                shape,
            )
        )
        return View(scope.instance + base, 0, shape, row_major(shape), dtype)
