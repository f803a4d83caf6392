"""What calls of backend collectives cost, by the algorithm that is fastest or was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.diagnostics import did_you_mean
from commlang.errors import UsageError
from commlang.operations import OPERATIONS, Kind
from commlang.records import record
from commlang.simulate.algorithms import ALGORITHMS, HIERARCHICAL, Step, hierarchical
from commlang.simulate.messages import Pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlang.program.columns import Array, Program
    from commlang.schedule import Bucket
    from commlang.simulate.sizes import Bytes
    from commlang.simulate.wiring import Wiring
    from commlang.topology import Collective, Machine

MEASURED = "measured"
"""The algorithm of calls whose time the machine's file gives."""


@record
class Pattern:
    """One way to do a collective in one group: alpha + beta N + root sqrt(N) seconds.

    It keeps `resource` for `share` N seconds each and sends `load` N bytes through each.
    """

    algorithm: str
    alpha: float
    beta: float
    root: float
    resource: Array
    share: Array
    load: Array

    def seconds(self, size: Array) -> Array:
        """The time of calls of so many bytes."""
        return self.alpha + self.beta * size + self.root * np.sqrt(size)

    def shared(self, size: Array) -> Array:
        """The time when its own messages share links as well."""
        return np.maximum(self.seconds(size), self.alpha + float(self.share.max(initial=0)) * size)


@record
class Calls:
    """The calls of a program: bytes, seconds, latency and the pattern of each."""

    bytes: Array
    seconds: Array
    alpha: Array
    pattern: Array
    patterns: list[Pattern]


def asked_for(texts: Mapping[str, str]) -> dict[Kind, str]:
    """Algorithms by kind, from names such as all_reduce=ring; raises UsageError."""
    found: dict[Kind, str] = {}
    for name, algorithm in texts.items():
        operation = OPERATIONS.get(name)
        if operation is None or operation.kind not in ALGORITHMS:
            known = [n for n, o in OPERATIONS.items() if o.kind in ALGORITHMS]
            hint = did_you_mean(name, known) or f"these have one: {', '.join(known)}"
            raise UsageError(f"algorithm of `{name}`: this is no collective; {hint}")
        known = [*ALGORITHMS[operation.kind]]
        if operation.kind is Kind.ALL_REDUCE:
            known.append(HIERARCHICAL)
        if algorithm not in known:
            hint = did_you_mean(algorithm, known) or f"there is {', '.join(known)}"
            raise UsageError(f"algorithm {name}={algorithm}: no such algorithm; {hint}")
        found[operation.kind] = algorithm
    return found


def calls_of(
    program: Program,
    machine: Machine,
    wiring: Wiring,
    sizes: Bytes,
    *,
    algorithms: Mapping[Kind, str],
    contention: bool,
    buckets: Sequence[Bucket] = (),
) -> Calls:
    """The calls of a program; those of one kind, group and root are priced together."""
    count = len(wiring.first) - 1
    none = np.zeros(count)
    calls = Calls(none, none.copy(), none.copy(), np.zeros(count, dtype=np.int64), [])
    if not count:
        return calls
    size = np.maximum.reduceat(np.maximum(*sizes.sides(wiring.member)), wiring.first[:-1])
    calls.bytes[:] = _bucketed(program, wiring, size, buckets)
    for chosen, kind, group, root in _alike(program, wiring):
        members = np.array(program.groups.entries[group].members, dtype=np.int64)
        place = int(np.flatnonzero(members == root)[0]) if root >= 0 else 0
        _price(calls, chosen, machine, kind, members, place, algorithms.get(kind), contention)
    return calls


def _bucketed(program: Program, wiring: Wiring, size: Array, buckets: Sequence[Bucket]) -> Array:
    """The bytes of calls, where the first of a bucket carries those of all; -1 for the rest."""
    size = size.astype(np.float64)
    if not buckets:
        return size
    first: dict[int, int] = {}
    for number, group in enumerate(program.group[wiring.member[wiring.first[:-1]]].tolist()):
        first.setdefault(group, number)
    for bucket in buckets:
        at = first[bucket.group] + bucket.turn
        size[at] = size[at : at + bucket.count].sum()
        size[at + 1 : at + bucket.count] = -1
    return size


def _alike(program: Program, wiring: Wiring) -> Iterator[tuple[Array, Kind, int, int]]:
    """Calls of one kind, group and root, which are patterns but for their bytes."""
    row = wiring.member[wiring.first[:-1]]
    columns = np.stack([program.kind[row], program.group[row], program.peer[row]], axis=1)
    table, number = np.unique(columns, axis=0, return_inverse=True)
    order = np.argsort(number.ravel(), kind="stable")
    bounds = np.searchsorted(number.ravel()[order], np.arange(len(table) + 1))
    for i, (kind, group, root) in enumerate(table.tolist()):
        yield order[bounds[i] : bounds[i + 1]], Kind(kind), group, root


def _price(
    calls: Calls,
    chosen: Array,
    machine: Machine,
    kind: Kind,
    members: Array,
    root: int,
    wanted: str | None,
    contention: bool,
) -> None:
    """Time and pattern of some calls: what was measured, else the fastest algorithm."""
    size = calls.bytes[chosen]
    known = None if wanted else machine.collective(kind.name.lower(), len(members))
    options = [_measured()] if known else list(_options(machine, kind, members, root, wanted))
    if known:
        times = [_look_up(known, size)]
    else:
        times = [o.shared(size) if contention else o.seconds(size) for o in options]
    best = np.argmin(times, axis=0)
    number = len(calls.patterns) + best
    calls.patterns.extend(options)
    calls.pattern[chosen] = number
    alone = [_look_up(known, size)] if known else [o.seconds(size) for o in options]
    alpha = np.array([o.alpha for o in options])[best]
    joined = size < 0  # the first of its bucket takes the time of all
    calls.seconds[chosen] = np.where(joined, 0, np.take_along_axis(np.array(alone), best[None], 0))
    calls.alpha[chosen] = np.where(joined, 0, alpha)
    calls.bytes[chosen] = np.maximum(size, 0)


def _measured() -> Pattern:
    none = np.zeros(0)
    return Pattern(MEASURED, 0.0, 0.0, 0.0, np.zeros(0, dtype=np.int64), none, none)


def _look_up(known: Collective, size: Array) -> Array:
    values, number = np.unique(np.maximum(size, 0), return_inverse=True)
    return np.array([known.seconds(v) for v in values.tolist()])[number.ravel()]


def _options(
    machine: Machine, kind: Kind, members: Array, root: int, wanted: str | None
) -> Iterator[Pattern]:
    """The algorithms of a kind, or the one that is wanted, on the links of these members."""
    if len(members) == 1:
        yield _pattern(machine, "alone", [])
        return
    table = members[None]
    for name, algorithm in ALGORITHMS[kind].items():
        if wanted in (None, name):
            yield _pattern(machine, name, algorithm(table, root))
    if kind is Kind.ALL_REDUCE and wanted in (None, HIERARCHICAL):
        nodes = nodes_of(machine, members)
        if nodes is not None:
            for between in ALGORITHMS[kind].values():
                yield _pattern(machine, HIERARCHICAL, hierarchical(nodes, between))
        elif wanted:
            raise UsageError(
                f"algorithm all_reduce={HIERARCHICAL}: on {machine.name} the {len(members)} ranks "
                "of a group are not spread evenly over several nodes of several ranks"
            )


def nodes_of(machine: Machine, members: Array) -> Array | None:
    """Members by node (nodes, members of each), at the innermost level that parts them evenly."""
    inside = 1
    for level in machine.levels[:-1]:
        inside *= level.count
        node = members // inside
        values, counts = np.unique(node, return_counts=True)
        if len(values) > 1 and counts[0] > 1 and (counts == counts[0]).all():
            return members[np.argsort(node, kind="stable")].reshape(len(values), -1)
    return None


def _pattern(machine: Machine, name: str, steps: list[Step]) -> Pattern:
    """Sum the steps up, and what they send through each resource."""
    alpha = beta = root = overhead = 0.0
    resources, loads = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for step in steps:
        pairs = Pairs.of(machine, step.src, step.dst)
        latency, pace = float(pairs.latency.max()), float(pairs.pace.max())
        overhead = max(overhead, float(pairs.overhead.max()))
        alpha, beta = alpha + step.rounds * latency, beta + step.serial * pace
        root += 2 * float(np.sqrt(max(step.stages, 0) * latency * pace))
        if step.each:
            gap, taken = (
                max(float(np.bincount(end, values).max()) for end in (step.src, step.dst))
                for values in (pairs.gap * step.weight, pairs.pace * step.part)
            )
            alpha, beta = alpha + gap, beta + taken
        resources.append(pairs.resource)
        loads.append(np.full(len(pairs.resource), step.part))
    used, number = np.unique(np.concatenate(resources), return_inverse=True)
    load = np.bincount(number.ravel(), np.concatenate(loads), len(used))
    share = load / machine.capacities[used] if len(used) else load
    return Pattern(name, alpha + 2 * overhead, beta, root, used, share, load)
