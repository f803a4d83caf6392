"""From externs and `compute` to calls: functions of what they read, of which nothing is known.

A call that reads nothing brings in data from outside, which differ from rank to rank. A `compute`
that reads nothing does not change the parameters that it writes: as in a run, what they hold at
entry stands for what is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from commlang.contracts import field, functions
from commlang.expand.record import Column
from commlang.operations import Access, Kind
from commlang.program.assemble import ACCESSES
from commlang.records import record

if TYPE_CHECKING:
    from commlang.contracts.lowering import Lowering
    from commlang.expand.record import Site
    from commlang.program.columns import Array

_READ, _WRITE = ACCESSES.index(Access.READ), ACCESSES.index(Access.WRITE)
_TIMES = ("cost", "duration")

Sample: TypeAlias = tuple[int, int, int]
"""A function, an operand of it, and how many elements that has."""


@record
class Ports:
    """Regions that calls read or write, by call: `length` elements from `start`.

    `call` numbers the calls, `place` is where the region starts within its operand, which is the
    `operand`-th of the call; `row` is the event.
    """

    start: Array
    length: Array
    call: Array
    operand: Array
    place: Array
    row: Array


@record
class Work:
    """All calls: what they read and write, and by call a number that tells functions apart.

    `samples` are the addresses of regions that stand for the operands of functions, so that all
    calls of one are cut alike.
    """

    reads: Ports
    writes: Ports
    seed: Array
    names: tuple[str, ...]
    samples: dict[Sample, int]


class _Collector:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.reads: list[tuple[Array, ...]] = []
        self.writes: list[tuple[Array, ...]] = []
        self.seeds: list[Array] = [np.zeros(0, dtype=np.uint64)]
        self.names: list[str] = []
        self.samples: dict[Sample, int] = {}

    def statement(self, number: int, rows: Array) -> None:
        """Calls of one statement with one number of operands."""
        low, ops = self.low, self.low.operands
        site = low.program.sites[number]
        first = ops.first[rows]
        access = ops.access[first[0] : first[0] + low.program.count[rows[0]]].tolist()
        function = _function(site)
        seed = _seeds(low, site, function, rows)
        inner = any(a != _WRITE for a in access)
        if not inner:
            seed = field.mix(seed ^ field.mix(rows), number)
        calls = len(self.names) + np.arange(len(rows))
        self.names += [_name(site)] * len(rows)
        self.seeds.append(seed)
        for place, kind in enumerate(access):
            operand = first + place
            keep = np.ones(len(rows), dtype=np.bool_)
            if not inner and site.kind is Kind.COMPUTE:
                keep = ~ops.is_parameter(operand)
            for index, start, within, length in ops.contiguous(operand[keep]):
                index = np.flatnonzero(keep)[index]
                port = (start, length, calls[index], np.full(len(index), place), within)
                port = (*port, rows[index])
                self._sample(function, place, start, within, length, ops.length[operand[index]])
                if kind != _WRITE:
                    self.reads.append(port)
                if kind != _READ:
                    self.writes.append(port)

    def _sample(
        self, function: int, place: int, start: Array, within: Array, length: Array, numel: Array
    ) -> None:
        for size in sorted(set(numel.tolist())):
            key = (function, place, size)
            if key not in self.samples:
                self.samples[key] = int(self.low.shelf.take(np.array([size]))[0])
            chosen = numel == size
            sample = self.samples[key] + within[chosen]
            self.low.builder.link(start[chosen], sample, length[chosen])


def lower_work(low: Lowering) -> Work:
    """All calls, statement by statement."""
    program = low.program
    rows = np.flatnonzero((program.kind == Kind.COMPUTE) | (program.kind == Kind.EXTERN))
    rows = rows[program.count[rows] > 0]
    found = _Collector(low)
    kind = program.site[rows].astype(np.int64) << 32 | program.count[rows]
    for number in sorted(set(kind.tolist())):
        found.statement(number >> 32, rows[kind == number])
    return Work(
        _ports(found.reads),
        _ports(found.writes),
        np.concatenate(found.seeds),
        tuple(found.names),
        found.samples,
    )


def _ports(parts: list[tuple[Array, ...]]) -> Ports:
    none = (np.zeros(0, dtype=np.int64),) * 6
    columns = [np.concatenate(column) for column in zip(none, *parts, strict=True)]
    return Ports(*(column[columns[1] > 0] for column in columns))


def _name(site: Site) -> str:
    if site.kind is Kind.EXTERN:
        return site.name
    label: Any = dict(site.arguments).get("label")
    return label if isinstance(label, str) else "compute"


def _function(site: Site) -> int:
    """A number for the function: externs have names, a `compute` its label or its place."""
    if site.kind is Kind.EXTERN:
        assert site.extern is not None
        return functions.number_of(site.extern)
    label = dict(site.arguments).get("label")
    place = f"{site.source.path}\0{site.span.start}"
    return functions.number_of_name(f"compute\0{label if isinstance(label, str) else place}")


def _seeds(low: Lowering, site: Site, function: int, rows: Array) -> Array:
    """By row, a number for the function, its ints and the shapes of what an extern reads."""
    arguments = [_told(low, value, rows) for name, value in site.arguments if name not in _TIMES]
    seed = functions.seeds(function, arguments, len(rows))
    if site.kind is not Kind.EXTERN:
        return seed
    ops = low.operands
    first = ops.first[rows]
    for operand in range(int(low.program.count[rows[0]])):
        if ops.access[first[0] + operand] != _WRITE:
            seed = functions.with_shape(seed, ops.dims(first + operand))
    return seed


def _told(low: Lowering, value: Any, rows: Array) -> Any:
    """An argument of a site by row, where its number is one of the row."""
    if isinstance(value, tuple):
        return tuple(_told(low, part, rows) for part in value)  # pyright: ignore
    if not isinstance(value, Column):
        return value
    bits = low.program.numbers[low.program.numbers_at[rows] + value.index]
    return bits.view(np.float64) if value.real else bits
