"""What the critical path consists of, by statement and by what takes the time."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record
from commlang.simulate.wiring import CALL, LOCAL, RECV, SEND

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.simulate.result import Simulation


class Cause(StrEnum):
    """What takes the time of a part of the path."""

    WORK = "work"
    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    CONTENTION = "contention"


@record
class Stretch:
    """What a statement takes of the critical path: seconds by cause, and how many events."""

    site: int
    row: int
    events: int
    seconds: float
    causes: dict[Cause, float]


def stretches(simulation: Simulation) -> list[Stretch]:
    """The statements on the critical path, that which takes most first."""
    rows = simulation.path.row
    parts = _parts(simulation)
    site = simulation.program.site[rows]
    found: list[Stretch] = []
    for number in np.unique(site).tolist():
        at = np.flatnonzero(site == number)
        causes = {cause: float(part[at].sum()) for cause, part in parts.items()}
        seconds = float(simulation.path.seconds[at].sum())
        found.append(Stretch(number, int(rows[at[0]]), len(at), seconds, causes))
    return sorted(found, key=lambda s: (-s.seconds, s.site))


def _parts(simulation: Simulation) -> dict[Cause, Array]:
    """Per row of the path, its seconds by cause: data, then fixed costs, the rest queueing."""
    path, wiring, costs = simulation.path, simulation.wiring, simulation.costs
    role, link = wiring.role[path.row], np.maximum(wiring.link[path.row], 0)
    local, call = role == LOCAL, role == CALL
    message = ~local & ~call
    data, fixed = np.zeros(len(path.row)), np.zeros(len(path.row))
    m, c = costs.lot[link[message]], link[call]
    pair = simulation.messages.pair[m]
    long = np.maximum(costs.occupy[m] - simulation.messages.pairs.gap[pair], 0)
    data[message] = long
    fixed[message] = costs.flight[m] - long + np.where(role[message] == RECV, costs.receipt[m], 0)
    alpha = np.minimum(simulation.calls.alpha[c], costs.seconds[c])
    fixed[call], data[call] = alpha, costs.seconds[c] - alpha
    data = np.minimum(data, path.seconds)
    fixed = np.minimum(fixed, path.seconds - data)
    rest = path.seconds - data - fixed
    return {
        Cause.WORK: np.where(local, path.seconds, 0.0),
        Cause.LATENCY: np.where(local, 0.0, fixed),
        Cause.BANDWIDTH: np.where(local, 0.0, data),
        Cause.CONTENTION: np.where(local, 0.0, rest),
    }


def bottleneck(simulation: Simulation) -> str:
    """The cause that takes most of the critical path, and the statement that has most of it."""
    if not simulation.makespan:
        return "Nothing here takes any time."
    found = stretches(simulation)
    total = {cause: sum(s.causes[cause] for s in found) for cause in Cause}
    cause = max(total, key=lambda one: total[one])
    worst = max(found, key=lambda s: s.causes[cause])
    part = f"{100 * total[cause] / simulation.makespan:.0f} % of the critical path"
    text = f"`{simulation.program.text(worst.row)}` ({_where(simulation.program, worst.row)})"
    match cause:
        case Cause.WORK:
            return f"Local work: it is {part}, most of it {text}."
        case Cause.LATENCY:
            return (
                f"Latency: the fixed costs of messages and calls are {part}, most of it those of "
                f"{text}; fewer and larger ones would help."
            )
        case Cause.BANDWIDTH:
            where = _link(simulation, worst.row)
            return f"Bandwidth{where}: data on the way are {part}, most of it those of {text}."
        case Cause.CONTENTION:
            return (
                f"Contention: queueing for channels that others use is {part}, most of it that of "
                f"{text}; the fullest is {_fullest(simulation)}."
            )


def _where(program: Program, row: int) -> str:
    """`file.cl:line:column`, without the folders."""
    return PurePath(program.where(row)).name


def _link(simulation: Simulation, row: int) -> str:
    program, machine = simulation.program, simulation.machine
    if simulation.wiring.role[row] in (SEND, RECV):
        ends = np.array([program.rank[row]]), np.array([program.peer[row]])
        return f" of {machine.links[int(machine.link_of(*ends)[0])].name}"
    call = int(simulation.wiring.link[row])
    pattern = simulation.calls.patterns[int(simulation.calls.pattern[call])]
    if not len(pattern.resource):
        return ""
    slowest = int(pattern.resource[int(np.argmax(pattern.share))])
    return f" of {machine.links[machine.resources[slowest].link].name}"


def _fullest(simulation: Simulation) -> str:
    seconds = simulation.link_bytes / simulation.machine.capacities
    return simulation.machine.resources[int(np.argmax(seconds))].name
