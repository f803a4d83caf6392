"""How many bytes rows name, and what local rows take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.dtypes import DTYPES
from commlang.errors import UsageError
from commlang.expand.record import Column
from commlang.operations import Kind
from commlang.program.sorting import is_sorted, stable_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.expand.record import Site
    from commlang.program.columns import Array, Program
    from commlang.topology import Machine

_READ, _WRITE, _UPDATE = 0, 1, 2


class Bytes:
    """Bytes that the rows of a program read and write; with `fast`, numba adds them up."""

    def __init__(self, program: Program, *, fast: bool = False) -> None:
        self.program, self.fast = program, fast
        operands = program.operands
        sizes = np.array([block.dtype.itemsize for block in program.buffers], dtype=np.int64)
        if len({*sizes.tolist()}) > 1:
            block = np.searchsorted(program.buffer_base, operands.buffer, side="right") - 1
            self._each = operands.length * sizes[block]
        else:
            self._each = operands.length * int(sizes.max(initial=1))

    @property
    def columns(self) -> tuple[Array, Array]:
        """The first operand of each row, and the bytes of each operand."""
        return self.program.first, self._each

    def of_one(self, rows: Array) -> Array:
        """Of rows with one operand each."""
        return self._each[self.program.first[rows]]

    def sides(self, rows: Array) -> tuple[Array, Array]:
        """What each row reads and what it writes."""
        program = self.program
        if self.fast:
            from commlang.simulate.compiled import compiled

            reads, writes = (np.zeros(len(rows), dtype=np.int64) for _ in range(2))
            access = program.operands.access
            compiled(add_sides)(
                rows, program.first, program.count, access, self._each, reads, writes
            )
            return reads, writes
        counts = program.count[rows].astype(np.int64)
        width = int(counts.max(initial=0))
        if width and (counts == width).all():
            return self._alike(program.first[rows], width)
        owner = np.repeat(np.arange(len(rows)), counts)
        ends = np.cumsum(counts)
        at = np.repeat(program.first[rows] - (ends - counts), counts) + np.arange(len(owner))
        access, each = program.operands.access[at], self._each[at]
        reads, writes = (
            np.bincount(owner, np.where(access != other, each, 0), len(rows)).astype(np.int64)
            for other in (_WRITE, _READ)
        )
        return reads, writes

    def _alike(self, first: Array, width: int) -> tuple[Array, Array]:
        """The same for rows that all have so many operands."""
        reads, writes = (np.zeros(len(first), dtype=np.int64) for _ in range(2))
        for place in range(width):
            access, each = self.program.operands.access[first + place], self._each[first + place]
            reads += np.where(access != _WRITE, each, 0)
            writes += np.where(access != _READ, each, 0)
        return reads, writes


def add_sides(
    rows: Any, first: Any, count: Any, access: Any, each: Any, reads: Any, writes: Any
) -> None:
    """Fill in what rows read and write."""
    for i in range(len(rows)):
        start = first[rows[i]]
        for at in range(start, start + count[rows[i]]):
            if access[at] != _WRITE:
                reads[i] += each[at]
            if access[at] != _READ:
                writes[i] += each[at]


def local_work(
    program: Program, machine: Machine, costs: Mapping[str, float], sizes: Bytes
) -> Array:
    """Seconds of each local row; 0 of the others.

    `costs` are seconds by the name of an extern or the label of a `compute`, and go before what the
    pattern says. Copies and the like take the time of their bytes at the memory's bandwidth.
    """
    work = np.zeros(len(program))
    unused = dict(costs)
    local = np.flatnonzero((program.kind >= Kind.COPY) & (program.kind <= Kind.EXTERN))
    site = program.site[local]
    if not is_sorted(site):
        order = stable_order(site)
        local, site = local[order], site[order]
    bounds = np.searchsorted(site, np.arange(len(program.sites) + 1))
    for number, site in enumerate(program.sites):
        if not site.kind.is_local:
            continue
        rows = local[bounds[number] : bounds[number + 1]]
        given = next((costs[n] for n in _names(site) if n in costs), None)
        for name in _names(site):
            unused.pop(name, None)
        work[rows] = _site_work(program, machine, site, rows, sizes) if given is None else given
    if unused:
        known = sorted({name for site in program.sites for name in _names(site)})
        raise UsageError(
            f"cost of `{next(iter(unused))}`: `{program.name}` has no such extern or label of "
            f"compute; it has {', '.join(known) or 'none'}"
        )
    return work


def uncosted(program: Program, costs: Mapping[str, float]) -> tuple[str, ...]:
    """Externs of which nothing says how long they take."""
    return tuple(
        dict.fromkeys(
            site.name
            for site in program.sites
            if site.kind is Kind.EXTERN
            and site.name not in costs
            and "cost" not in dict(site.arguments)
        )
    )


def _names(site: Site) -> tuple[str, ...]:
    """Names by which costs may be given for a site."""
    if site.kind is Kind.EXTERN:
        return (site.name,)
    if site.kind is Kind.COMPUTE:
        label = dict(site.arguments).get("label")
        return (label, "compute") if isinstance(label, str) else ("compute",)
    return ()


def _site_work(
    program: Program, machine: Machine, site: Site, rows: Array, sizes: Bytes
) -> Array | float:
    arguments = dict(site.arguments)
    if site.kind is Kind.EXTERN:
        return _values(program, rows, arguments.get("cost", 0))
    if site.kind is Kind.COMPUTE:
        if "matmul" in arguments:
            return _matmul(program, machine, site, rows, arguments["matmul"])
        return _values(program, rows, arguments["duration"])
    bandwidth = machine.compute.memory_bandwidth
    if not bandwidth:
        return 0.0
    reads, writes = sizes.sides(rows)
    return (reads + writes) / bandwidth


def _values(program: Program, rows: Array, value: Any) -> Array | float:
    """An argument of some rows, as floats."""
    if not isinstance(value, Column):
        return float(value)
    numbers = program.numbers[program.numbers_at[rows] + value.index]
    return numbers.view(np.float64) if value.real else numbers.astype(np.float64)


def _matmul(
    program: Program, machine: Machine, site: Site, rows: Array, sides: tuple[Any, ...]
) -> Array | float:
    """2 m n k operations at the device's speed; the dtype is that of the first operand."""
    m, n, k = (_values(program, rows, side) for side in sides)
    first = program.first[rows[:1]]
    name = "float32"
    if len(first) and program.count[rows[0]]:
        dtype = program.buffer_of(int(program.operands.buffer[first[0]])).dtype
        name = dtype.name if DTYPES[dtype.name].family == "float" else name
    speed = machine.compute.flops.get(name)
    if not speed:
        raise UsageError(
            f"{site.where()}: {machine.name} does not say how fast it multiplies {name}; give "
            f"`--cost {_names(site)[0]}=3ms`, or `compute: flops:` in the machine's file"
        )
    return 2.0 * m * n * k / (speed * machine.compute.efficiency)
