"""All that is compared of one pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.compare.proofs import Proofs, prove
from commlang.compare.spread import Spread
from commlang.errors import UsageError
from commlang.expand.values import Op
from commlang.operations import Kind
from commlang.records import record
from commlang.simulate import simulate
from commlang.simulate.memory import peak_memory
from commlang.traffic import by_link, traffic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.topology import Machine
    from commlang.traffic import Traffic


@record
class On:
    """A pattern on one machine; times in seconds.

    `links` are bytes over each class of link, by all ranks together. `computing` and `exposed`,
    the time in which a rank waits for communication or for who sends, are per rank. `memory` is
    what a device has, in bytes, None where the machine does not say. `uncosted` are externs that
    took no time, since nothing says how long they take.
    """

    machine: str
    links: dict[str, int]
    makespan: float
    computing: Spread
    exposed: Spread
    bottleneck: str
    memory: float | None
    uncosted: tuple[str, ...]


@record
class Failed:
    """What could not be told of a pattern, or on a machine, and why; `code` is the exit code."""

    name: str
    reason: str
    code: int


@record
class Column:
    """What one pattern comes to; `sent` and `memory` in bytes, all but `events` per rank.

    `messages` are point to point; those that a collective is made of do not count, but its bytes
    do, by the algorithm that the backend usually takes. `memory` is the most that the pattern's
    tensors take at one time. `parameters` are those that it ran with.
    """

    label: str
    pattern: str
    world: int
    parameters: dict[str, Any]
    events: int
    sent: Spread
    messages: Spread
    collectives: Spread
    memory: Spread
    proofs: Proofs
    on: tuple[On | Failed, ...]


def column(
    label: str, program: Program, machines: Sequence[Machine] = (), backend: str | None = None
) -> Column:
    """Judge a program, count what it sends and simulate it on each machine.

    Raises PatternError with the errors in it; what a machine is too small for is Failed in `on`.
    """
    proofs = prove(program)
    sends = traffic(program, backend=backend)
    return Column(
        label=label,
        pattern=program.name,
        world=program.world,
        parameters={name: _plain(value) for name, value in program.parameters.items()},
        events=len(program),
        sent=Spread.of(sends.sent),
        messages=_per_rank(program, program.kind == Kind.SEND),
        collectives=_per_rank(program, program.is_collective),
        memory=Spread.of(peak_memory(program)),
        proofs=proofs,
        on=tuple(_on(program, sends, machine) for machine in machines),
    )


def _plain(value: Any) -> Any:
    """An op as one writes it; its factor is that of premul_sum only."""
    return str(value.op) if isinstance(value, Op) and value.factor is None else value


def _per_rank(program: Program, rows: Array) -> Spread:
    return Spread.of(np.bincount(program.rank[rows], minlength=program.world))


def _on(program: Program, sends: Traffic, machine: Machine) -> On | Failed:
    try:
        found = simulate(program, machine)
    except UsageError as error:
        return Failed(machine.name, str(error), error.exit_code)
    described: Any = machine  # whose properties are cached, which the protocol does not foresee
    links = by_link(sends, described).bytes.tolist()
    return On(
        machine.name,
        {link.name: size for link, size in zip(machine.links, links, strict=True)},
        found.makespan,
        Spread.of(found.ranks.compute),
        Spread.of(found.ranks.exposed),
        found.bottleneck,
        machine.compute.memory,
        found.uncosted,
    )
