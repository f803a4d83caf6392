"""What one rank does, as plain data: enough to run it without commlang, and cheap to send.

A script is read off the rows of a Program, not off the plan that the Executor follows: branches
stay branches, so that whoever runs it makes a schedule of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commlang.program.assemble import ACCESSES
from tests.reference.machine import Block, blocks_of

if TYPE_CHECKING:
    from commlang.program import Program


@dataclass(frozen=True, slots=True)
class Region:
    """Elements of a buffer."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    access: str

    @property
    def numel(self) -> int:
        size = 1
        for dim in self.shape:
            size *= dim
        return size


@dataclass(frozen=True, slots=True)
class Step:
    """One event; `row` names it, `joins` are the rows that a wait ends. Ranks are the world's."""

    row: int
    kind: str
    name: str
    regions: tuple[Region, ...]
    peer: int
    tag: int
    group: int
    op: str | None
    factor: float | None
    asynchronous: bool
    joins: tuple[int, ...]
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Branches:
    """Units (steps or branches) that run side by side, or one after the other."""

    side_by_side: bool
    units: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """All that a rank does. `groups` are the members of each communicator that anyone uses."""

    rank: int
    world: int
    body: Branches
    buffers: dict[int, tuple[str, int]]
    """The dtype and the number of elements of each buffer."""
    tensors: dict[str, tuple[int, tuple[int, ...]]]
    """The buffer and the shape of each tensor parameter."""
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])

    def steps(self) -> list[Step]:
        """All steps, in the order of the text."""
        found: list[Step] = []
        stack: list[Any] = [self.body]
        while stack:
            unit = stack.pop()
            if isinstance(unit, Step):
                found.append(unit)
            else:
                stack += reversed(unit.units)
        return found


def scripts(program: Program) -> list[Script]:
    """The script of every rank."""
    used = sorted({int(g) for g in program.group.tolist() if g > 0})
    groups = {g: tuple(program.groups.entries[g].members) for g in used}
    return [_script(program, rank, groups) for rank in range(program.world)]


def _script(program: Program, rank: int, groups: dict[int, tuple[int, ...]]) -> Script:
    joins: dict[int, list[int]] = {}
    for row in program.rows_of(rank):
        joins.setdefault(int(program.wait[row]), []).append(row)

    def unit(part: Any) -> Any:
        if isinstance(part, Block):
            return Branches(part.side_by_side, tuple(unit(p) for p in part.units))
        return _step(program, part, tuple(joins.get(part, ())))

    body = unit(blocks_of(program, rank))
    buffers: dict[int, tuple[str, int]] = {}
    tensors: dict[str, tuple[int, tuple[int, ...]]] = {}
    for name, view in program.tensors.items():
        shape = tuple(int(_at(dim, rank)) for dim in view.shape)
        number = int(_at(view.buffer, rank))
        tensors[name] = (number, shape)
        size = 1
        for dim in shape:
            size *= dim
        buffers[number] = (view.dtype.name, size)
    script = Script(rank, program.world, body, buffers, tensors, groups)
    for step in script.steps():
        for region in step.regions:
            if region.buffer not in buffers:
                block = program.buffer_of(region.buffer)
                buffers[region.buffer] = (block.dtype.name, block.capacity)
    return script


def _at(value: Any, rank: int) -> Any:
    return value if isinstance(value, int) else value[rank]


def _step(program: Program, row: int, joins: tuple[int, ...]) -> Step:
    site = program.site_of(row)
    first, count = int(program.first[row]), int(program.count[row])
    factor = site.op.factor if site.op else None
    return Step(
        row=row,
        kind=site.kind.name,
        name=site.name,
        regions=tuple(_region(program, place) for place in range(first, first + count)),
        peer=int(program.peer[row]),
        tag=int(program.tag[row]),
        group=int(program.group[row]),
        op=str(site.op.op) if site.op else None,
        factor=float(factor) if factor is not None else None,
        asynchronous=bool(site.asynchronous),
        joins=joins,
        arguments={n: _plain(v) for n, v in program.arguments_of(row).items()},
    )


def _region(program: Program, place: int) -> Region:
    data = program.operands
    layout = int(data.layout[place])
    shape, strides = ((int(data.length[place]),), (1,)) if layout < 0 else data.layouts[layout]
    access = str(ACCESSES[int(data.access[place])])
    return Region(
        int(data.buffer[place]), int(data.offset[place]), tuple(shape), tuple(strides), access
    )


def _plain(value: Any) -> Any:
    """A number, or what it is called: arguments only have to tell two calls apart."""
    if isinstance(value, bool | int | float | str):
        return value
    return float(value) if hasattr(value, "numerator") else str(value)
