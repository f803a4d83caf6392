"""From externs and `compute` to calls: functions of what they read, of which nothing is known.

A call that reads nothing brings in data from outside, which differ from rank to rank. A `compute`
that reads nothing does not change the parameters that it writes: as in a run, what they hold at
entry stands for what is computed.
"""

from __future__ import annotations

import zlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.contracts import field
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
    """All calls: what they read and write, and by call a number that tells functions apart."""

    reads: Ports
    writes: Ports
    seed: Array
    names: tuple[str, ...]


class _Collector:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.reads: list[tuple[Array, ...]] = []
        self.writes: list[tuple[Array, ...]] = []
        self.seeds: list[Array] = [np.zeros(0, dtype=np.uint64)]
        self.names: list[str] = []
        self.samples: dict[tuple[int, int, int], int] = {}
        """Regions that stand for an operand of a function, so that all calls are cut alike."""

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
        _ports(found.reads), _ports(found.writes), np.concatenate(found.seeds), tuple(found.names)
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
    label = dict(site.arguments).get("label")
    place = f"{site.source.path}\0{site.span.start}"
    if site.kind is Kind.EXTERN:
        assert site.extern is not None
        place = f"{site.extern.module.source.path}\0{site.extern.node.span.start}"
    elif isinstance(label, str):
        place = label
    return zlib.crc32(f"{site.kind}\0{place}".encode())


def _seeds(low: Lowering, site: Site, function: int, rows: Array) -> Array:
    """By row, a number for the function and its ints."""
    program = low.program
    seed = field.mix(np.full(len(rows), function, dtype=np.uint64))

    def enter(value: Any, seed: Array) -> Array:
        if isinstance(value, tuple):
            for part in value:  # pyright: ignore[reportUnknownVariableType]
                seed = enter(part, seed)
            return seed
        if isinstance(value, Column):
            entry = program.numbers[program.numbers_at[rows] + value.index].view(np.uint64)
        elif isinstance(value, str):
            entry = zlib.crc32(value.encode())
        elif isinstance(value, int | Fraction):
            entry = field.number(value) if isinstance(value, Fraction) else value % field.WORD
        else:
            entry = zlib.crc32(str(value).encode())
        return field.mix(seed ^ field.mix(np.atleast_1d(np.asarray(entry, np.uint64))), 1)

    for name, value in site.arguments:
        if name not in _TIMES:
            seed = enter(value, seed)
    return seed
