"""What a simulation found: times, and where they went."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.timing import Timing
from commlang.records import record
from commlang.simulate.critical import Path, critical_path
from commlang.simulate.run import SMALL, has_numba
from commlang.simulate.wiring import CALL, LOCAL

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.simulate.calls import Calls
    from commlang.simulate.kernel import Clock, Costs
    from commlang.simulate.messages import Messages
    from commlang.simulate.wiring import Wiring
    from commlang.topology import Machine


@record
class Ranks:
    """How each rank spends the time, in seconds: float64 arrays of the world's length.

    `compute` is local work. `exposed` is communication that nothing hides: the rank does nothing
    but wait for it, in a call or a `wait`. `late` is the part of it before the operation that ends
    the wait had begun to move, which another rank is the reason of. `idle` comes after the rank's
    last event. So `busy + wait` is the makespan, with `busy` = compute + exposed - late and `wait`
    = late + idle.
    """

    compute: Array
    exposed: Array
    late: Array
    idle: Array

    @property
    def busy(self) -> Array:
        """Computing, or data on the way."""
        return self.compute + self.exposed - self.late

    @property
    def wait(self) -> Array:
        """Nothing to do, and nothing on the way."""
        return self.late + self.idle


@dataclass(frozen=True, eq=False)
class Simulation:
    """The times of a program on a machine; what costs more than a look is found when asked for."""

    program: Program
    machine: Machine
    wiring: Wiring
    costs: Costs
    clock: Clock
    messages: Messages
    calls: Calls
    uncosted: tuple[str, ...]
    """Externs of which nothing says how long they take; they were taken to take no time."""

    @cached_property
    def makespan(self) -> float:
        """Seconds from the first start to the last end."""
        ends = self.clock.end[self.wiring.end < 0]  # of what nobody waits for
        last = self.clock.point[self.wiring.last].max(initial=0.0)
        return float(np.nanmax(ends, initial=last)) if len(ends) else float(last)

    @cached_property
    def timing(self) -> Timing:
        """Start and end of each row; a `wait` lasts until the rank goes on."""
        end = self.clock.end.copy()
        waits = np.flatnonzero(self.program.kind == Kind.WAIT)
        end[waits] = self.clock.point[self.wiring.end[waits]]
        return Timing(self.clock.begin, end, f"simulated on {self.machine.name}")

    @cached_property
    def path(self) -> Path:
        """The critical path with the time that each of its rows accounts for."""
        fast = len(self.program) > SMALL and has_numba()
        return critical_path(self.wiring, self.costs, self.clock, fast=fast)

    @property
    def critical(self) -> Array:
        """The rows of the critical path in the order of time."""
        return self.path.row

    @cached_property
    def ranks(self) -> Ranks:
        """How each rank spends the time."""
        return _ranks(self)

    @cached_property
    def bubble(self) -> float | None:
        """The part of the makespan in which ranks that compute do not; None if no rank does.

        Computing is `compute` and externs, that of branches side by side once; a rank that does
        none is left out.
        """
        program = self.program
        real = (program.kind == Kind.COMPUTE) | (program.kind == Kind.EXTERN)
        spans = _spans(self)
        done = _work(self, np.where(real, self.costs.work, 0.0), spans)
        work = np.bincount(spans.rank, done, minlength=program.world)
        work = work[work > 0]
        if not len(work) or not self.makespan:
            return None
        return max(float(1 - work.mean() / self.makespan), 0.0)

    @cached_property
    def link_bytes(self) -> Array:
        """Bytes through each of the machine's resources, collectives' own messages included."""
        found = np.zeros(len(self.machine.capacities))
        messages, calls = self.messages, self.calls
        pairs = messages.pairs
        each = np.bincount(messages.lot, minlength=len(messages.pair))
        sent = np.bincount(messages.pair, messages.bytes * each, minlength=len(messages.src))
        np.add.at(found, pairs.resource, np.repeat(sent, np.diff(pairs.pointer)))
        volume = np.bincount(calls.pattern, calls.bytes, minlength=len(calls.patterns))
        for pattern, size in zip(calls.patterns, volume.tolist(), strict=True):
            found[pattern.resource] += pattern.load * size
        return found

    @cached_property
    def peak_memory(self) -> Array:
        """Bytes of all tensors of each rank, as the executor holds them: temps are kept."""
        from commlang.simulate.memory import peak_memory

        return peak_memory(self.program)

    @cached_property
    def bottleneck(self) -> str:
        """What the critical path mostly consists of, in one sentence."""
        from commlang.simulate.bottleneck import bottleneck

        return bottleneck(self)


@record
class _Spans:
    """The spans between a point of a rank and its next, `after`: whose, from when, how long."""

    after: Array
    rank: Array
    begin: Array
    seconds: Array


def _spans(simulation: Simulation) -> _Spans:
    wiring, last = simulation.wiring, simulation.wiring.last
    times = simulation.clock.point[: wiring.chained]
    owner = np.repeat(np.arange(simulation.program.world), np.diff(last, prepend=-1))
    after = np.delete(np.arange(wiring.chained), np.append(0, last[:-1] + 1))
    begin = times[after - 1]
    return _Spans(after, owner[after], begin, times[after] - begin)


def _ranks(simulation: Simulation) -> Ranks:
    """Split each span between two points of a rank into work, waiting and data on the way."""
    clock, world, spans = simulation.clock, simulation.program.world, _spans(simulation)
    work = _work(simulation, simulation.costs.work, spans)
    rest = spans.seconds - work
    began = _began(simulation, np.maximum(clock.binder[spans.after], 0))
    late = np.clip(began - spans.begin - work, 0.0, rest)
    compute, exposed, before = (
        np.bincount(spans.rank, x, minlength=world) for x in (work, rest, late)
    )
    idle = simulation.makespan - clock.point[simulation.wiring.last]
    return Ranks(compute, exposed, before, idle)


def _work(simulation: Simulation, rows: Array, spans: _Spans) -> Array:
    """Local work of rows in each span, that of branches included: side by side counts once."""
    wiring = simulation.wiring
    start = wiring.start
    unit = (
        np.maximum.accumulate(np.where(start < wiring.chained, start, 0)) if len(start) else start
    )
    units = np.bincount(unit, rows, minlength=wiring.chained)
    return np.minimum(units[spans.after - 1], spans.seconds)


def _began(simulation: Simulation, rows: Array) -> Array:
    """When what ends with each row began to move; of local rows, that they never waited."""
    wiring, clock = simulation.wiring, simulation.clock
    role, link = wiring.role[rows], np.maximum(wiring.link[rows], 0)
    found = np.full(len(rows), -np.inf)
    calls = role == CALL
    messages = ~calls & (role != LOCAL)
    found[calls] = clock.met[link[calls]]
    found[messages] = clock.moved[link[messages]]
    return found
