"""The rows of a Program told as the reference interpreter tells its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.operations import Kind
from commlang.program.assemble import ACCESSES
from tests.reference.interpreter import interpret
from tests.reference.values import Op

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from commlang.program import Program
    from tests.reference.values import Construct, Event

Told = dict[str, Any]


class Numbers:
    """Numbers things by first appearance, so that identities of two worlds can be compared."""

    def __init__(self) -> None:
        self.known: dict[Hashable, int] = {}

    def __call__(self, thing: Hashable) -> int:
        return self.known.setdefault(thing, len(self.known))


def told_by_program(program: Program, rank: int) -> list[Told]:
    """The events of one rank of a program."""
    rows = program.rows_of(rank)
    buffers, nests = Numbers(), Numbers()
    return [_row(program, row, rows.start, buffers, nests) for row in rows]


def _row(program: Program, row: int, start: int, buffers: Numbers, nests: Numbers) -> Told:
    site = program.site_of(row)
    group, wait = int(program.group[row]), int(program.wait[row])
    entry = program.groups.entries[group] if group >= 0 else None
    factor = site.op.factor if site.op else None
    return {
        "kind": Kind(int(program.kind[row])).name,
        "name": site.name,
        "place": (site.span, len(site.path)),
        "peer": int(program.peer[row]),
        "tag": int(program.tag[row]),
        "group": (entry.label, entry.members) if entry else None,
        "op": (str(site.op.op), factor) if site.op else None,
        "dtype": str(site.dtype) if site.dtype else None,
        "nest": _nest_of_row(program, int(program.nest[row]), nests),
        "async": site.asynchronous,
        "wait": wait - start if wait >= 0 else None,
        "arguments": {name: _plain(v) for name, v in program.arguments_of(row).items()},
        "operands": [
            _operand(program, int(program.first[row]) + i, buffers)
            for i in range(int(program.count[row]))
        ],
    }


def _plain(value: Any) -> Any:
    """An argument as a comparable value; numbers that vary by rank are kept as ints."""
    if hasattr(value, "array"):
        return value.array[value.prefix].tolist()
    if hasattr(value, "op"):
        return (str(value.op), value.factor)
    if isinstance(value, Op):
        return (value.name, value.factor)
    if hasattr(value, "name"):
        return value.name  # a dtype
    return int(value) if isinstance(value, bool | np.integer) else value


def _operand(program: Program, place: int, buffers: Numbers) -> Told:
    data = program.operands
    number, offset = int(data.buffer[place]), int(data.offset[place])
    block = program.buffer_of(number)
    if int(data.layout[place]) < 0:
        elements = np.arange(offset, offset + int(data.length[place]))
    else:
        shape, strides = data.layouts[int(data.layout[place])]
        elements = np.full(shape, offset)
        for dim, stride in enumerate(strides):
            steps = np.arange(shape[dim]) * stride
            elements = elements + steps.reshape([-1 if d == dim else 1 for d in range(len(shape))])
    assert elements.size == int(data.length[place])
    return {
        "buffer": (block.name, str(block.dtype), buffers(number)),
        "elements": elements.reshape(-1).tolist(),
        "access": str(ACCESSES[int(data.access[place])]),
    }


def _nest_of_row(program: Program, key: int, numbers: Numbers) -> list[tuple[bool, int]]:
    """The constructs around a row from the inside out: (is a sequence, its number)."""
    path: list[tuple[bool, int]] = []
    nests = program.nests
    while key >= 0:
        at = np.flatnonzero(nests.key == key)
        path.append((bool(nests.sequence[at[0]]) if len(at) else False, numbers(key)))
        key = int(nests.parent[at[0]]) if len(at) else -1
    return path


def told_by_reference(
    program: Program, rank: int, values: Mapping[str, Any] | None = None
) -> list[Told]:
    """The events that the reference interpreter finds for one rank of the same pattern."""
    events = interpret(program.definition, program.world, rank, values)
    places = {id(event): i for i, event in enumerate(events)}
    buffers, nests = Numbers(), Numbers()
    return [_event(event, places, buffers, nests) for event in events]


def _event(event: Event, places: dict[int, int], buffers: Numbers, nests: Numbers) -> Told:
    return {
        "kind": event.kind,
        "name": event.name,
        "place": (event.span, len(event.calls)),
        "peer": event.peer,
        "tag": event.tag,
        "group": event.group,
        "op": (event.op.name, event.op.factor) if event.op else None,
        "dtype": event.dtype,
        "nest": _nest_of_event(event.nest, nests),
        "async": event.asynchronous,
        "wait": places[id(event.joined_by)] if event.joined_by else None,
        "arguments": {name: _plain(v) for name, v in event.arguments.items()},
        "operands": [
            {
                "buffer": (tensor.buffer.name, tensor.buffer.dtype, buffers(tensor.buffer)),
                "elements": tensor.index.reshape(-1).tolist(),
                "access": access,
            }
            for tensor, access in event.operands
        ],
    }


def _nest_of_event(nest: Construct | None, numbers: Numbers) -> list[tuple[bool, int]]:
    path: list[tuple[bool, int]] = []
    while nest is not None:
        path.append((nest.sequence, numbers(nest)))
        nest = nest.parent
    return path


def assert_same(
    program: Program, values: Mapping[str, Any] | None = None, ranks: Any = None
) -> int:
    """Compare every row of every rank; returns how many there are."""
    count = 0
    for rank in program.ranks.tolist() if ranks is None else ranks:
        have, want = told_by_program(program, rank), told_by_reference(program, rank, values)
        for place, (one, two) in enumerate(zip(have, want, strict=False)):
            assert one == two, f"rank {rank}, event {place}"
        assert len(have) == len(want), f"rank {rank}"
        count += len(have)
    return count
