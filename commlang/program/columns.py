"""The Program: every event of every rank, as a struct of arrays in program order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from commlang.expand.record import Column
from commlang.operations import Kind
from commlang.records import record

if TYPE_CHECKING:
    import networkx as nx

    from commlang.dtypes import DType
    from commlang.expand.groups import GroupTable
    from commlang.expand.record import BufferBlock, Site
    from commlang.expand.values import View
    from commlang.resolve.modules import Definition

Array: TypeAlias = NDArray[Any]


@record
class Operands:
    """Data of events: `first[row] : first[row] + count[row]` are the operands of a row.

    `offset` and `length` count elements. `access` numbers `ACCESSES`. `layout` is -1 for
    elements that lie one after the other, else the index of a (shape, strides) pair.
    """

    buffer: Array
    offset: Array
    length: Array
    access: Array
    layout: Array
    layouts: list[tuple[tuple[int, ...], tuple[int, ...]]]


@record
class Nests:
    """Constructs whose branches run side by side, and the sequences inside them.

    Sorted by `key`, the key at which a construct starts. `parent` is the key of the construct
    around it, -1 at the top. A construct that is not listed is a `parallel:` at the top.
    """

    key: Array
    parent: Array
    sequence: Array

    def look_up(self, key: Array) -> tuple[Array, Array, Array]:
        """Per key: whether it is listed, its parent (-1 if not), and whether it is a sequence."""
        if not len(self.key):
            return np.zeros(len(key), dtype=np.bool_), np.full(len(key), -1), key < key
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        listed = self.key[at] == key
        return listed, np.where(listed, self.parent[at], -1), listed & self.sequence[at]


@record
class Handles:
    """Rows that bind a handle or wait for one.

    `full` numbers a handle with its indices on its rank, `name` without them. `wildcard` marks a
    wait that joins all handles of a name. `deadline` is the key by which a row that binds must
    have been joined, since a temp that it uses ends there.
    """

    row: Array
    full: Array
    name: Array
    is_wait: Array
    wildcard: Array
    deadline: Array


@dataclass(frozen=True, eq=False)
class Program:
    """An expanded pattern. One row per event, sorted by rank and then by program order.

    Columns, each with one entry per row:

    - `rank`: the rank of the world that runs the event;
    - `key`: the place in program order; equal keys on different ranks are one statement instance;
    - `nest`: the key of the innermost `parallel:` or `sequence:` around the event, -1 for none;
    - `site`: the index of its statement in `sites`;
    - `peer`: the world's rank at the other end of a message, or a collective's root, or -1;
    - `tag`; `group`: the communicator's number in `groups`, -1 for local events;
    - `first`, `count`: its operands; `numbers_at`: where its further numbers start in `numbers`;
    - `wait`: for an async event the row of the wait that joins it, else -1.
    """

    world: int
    ranks: Array
    definition: Definition
    values: dict[str, Any]
    shapes: dict[str, Any]
    parameters: dict[str, Any]
    tensors: dict[str, View]
    groups: GroupTable
    sites: tuple[Site, ...]
    buffers: tuple[BufferBlock, ...]
    rank: Array
    key: Array
    nest: Array
    site: Array
    peer: Array
    tag: Array
    group: Array
    first: Array
    count: Array
    numbers_at: Array
    wait: Array
    operands: Operands
    numbers: Array
    nests: Nests
    handles: Handles
    rank_start: Array
    """Row at which each evaluated rank starts; one entry more than ranks."""

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def name(self) -> str:
        """The name of the pattern."""
        return self.definition.node.name

    @cached_property
    def site_kind(self) -> Array:
        """The kind of each site."""
        return np.array([s.kind for s in self.sites], dtype=np.int8)

    @cached_property
    def kind(self) -> Array:
        """The kind of each event, as `operations.Kind`."""
        return self.site_kind[self.site] if len(self.site_kind) else np.zeros(0, dtype=np.int8)

    @cached_property
    def site_async(self) -> Array:
        """Whether each site is asynchronous."""
        return np.array([s.asynchronous for s in self.sites], dtype=np.bool_)

    @cached_property
    def is_message(self) -> Array:
        """Whether each event is a send or a recv."""
        return self.kind <= Kind.RECV

    @cached_property
    def is_collective(self) -> Array:
        """Whether each event is a collective."""
        return (self.kind >= Kind.ALL_REDUCE) & (self.kind <= Kind.BARRIER)

    @cached_property
    def site_dtype(self) -> list[DType | None]:
        """The dtype of each site's data."""
        return [s.dtype for s in self.sites]

    @cached_property
    def buffer_base(self) -> Array:
        """The first buffer number of each block of `buffers`."""
        return np.array([b.base for b in self.buffers], dtype=np.int64)

    def buffer_of(self, number: int) -> BufferBlock:
        """The declaration that a buffer number belongs to."""
        return self.buffers[int(np.searchsorted(self.buffer_base, number, side="right")) - 1]

    def rows_of(self, rank: int) -> range:
        """The rows of one rank."""
        index = int(np.searchsorted(self.ranks, rank))
        return range(int(self.rank_start[index]), int(self.rank_start[index + 1]))

    def site_of(self, row: int) -> Site:
        """The statement of a row."""
        return self.sites[int(self.site[row])]

    def arguments_of(self, row: int) -> dict[str, Any]:
        """Further arguments of a row: a factor, a duration, an extern's ints."""
        start = int(self.numbers_at[row])

        def value(entry: Any) -> Any:
            if isinstance(entry, Column):
                number = self.numbers[start + entry.index]
                return number.view(np.float64).item() if entry.real else int(number)
            return tuple(value(part) for part in entry) if isinstance(entry, tuple) else entry  # pyright: ignore[reportUnknownVariableType]

        return {name: value(entry) for name, entry in self.site_of(row).arguments}

    def text(self, row: int) -> str:
        """The statement of a row, as its first line is written."""
        site = self.site_of(row)
        return site.source.excerpt(site.span)

    def where(self, row: int) -> str:
        """`path:line:column` of a row's statement."""
        return self.site_of(row).where()

    def graph(self) -> nx.DiGraph[Any]:
        """The dependency graph as a read-only NetworkX graph; see `commlang.program.graph`."""
        from commlang.program.graph import dependency_graph

        return dependency_graph(self)
