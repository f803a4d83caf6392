"""What calls of backend collectives cost, by the algorithm that is fastest or was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from commlang.diagnostics import did_you_mean
from commlang.errors import UsageError
from commlang.operations import OPERATIONS, Kind
from commlang.records import record
from commlang.simulate.algorithms import ALGORITHMS, HIERARCHICAL
from commlang.simulate.patterns import Pattern, options, unshared

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
    """The calls of a program, each with its bytes, its time and its pattern."""
    count = len(wiring.first) - 1
    none = np.zeros(count)
    calls = Calls(none, none.copy(), none.copy(), np.zeros(count, dtype=np.int64), [])
    if not count:
        return calls
    size = np.maximum.reduceat(np.maximum(*sizes.sides(wiring.member)), wiring.first[:-1])
    calls.bytes[:] = _bucketed(program, wiring, size, buckets)
    for kind, place, groups in _alike(program, wiring):
        for batch in _apart(groups):
            table = np.stack([members for _, members in batch])
            listed = options(machine, kind, table, place, algorithms.get(kind))
            for (chosen, members), found in zip(batch, listed, strict=True):
                known = None if kind in algorithms else measured(machine, kind, len(members))
                _price(calls, chosen, found, known, contention)
    return calls


def measured(machine: Machine, kind: Kind, size: int) -> Collective | None:
    """The times that the machine's file gives for a collective on so many ranks."""
    return machine.collective(kind.name.lower(), size)


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


_Group: TypeAlias = "tuple[Array, Array]"
"""Calls of one group, and its members."""


def _alike(program: Program, wiring: Wiring) -> Iterator[tuple[Kind, int, list[_Group]]]:
    """Calls by kind, root's place and number of members: for each group the calls and members."""
    row = wiring.member[wiring.first[:-1]]
    columns = np.stack([program.kind[row], program.group[row], program.peer[row]], axis=1)
    table, number = np.unique(columns, axis=0, return_inverse=True)
    order = np.argsort(number.ravel(), kind="stable")
    bounds = np.searchsorted(number.ravel()[order], np.arange(len(table) + 1)).tolist()
    found: dict[tuple[int, int, int], list[_Group]] = {}
    for i, (kind, group, root) in enumerate(table.tolist()):
        members = np.array(program.groups.entries[int(group)].members, dtype=np.int64)
        place = int(np.flatnonzero(members == root)[0]) if root >= 0 else 0
        chosen = order[bounds[i] : bounds[i + 1]]
        found.setdefault((kind, place, len(members)), []).append((chosen, members))
    for (kind, place, _), groups in found.items():
        yield Kind(kind), place, groups


def _apart(groups: list[_Group]) -> Iterator[list[_Group]]:
    """All groups at once if they have no rank in common, else each alone."""
    everyone = np.concatenate([members for _, members in groups])
    if len(np.unique(everyone)) == len(everyone):
        yield groups
    else:
        yield from ([group] for group in groups)


def _price(
    calls: Calls, chosen: Array, found: list[Pattern], known: Collective | None, contention: bool
) -> None:
    """Time and pattern of some calls: what was measured, else the fastest algorithm."""
    size = calls.bytes[chosen]
    joined, size = size < 0, np.maximum(size, 0)  # the first of its bucket takes the time of all
    if known:
        found, alone = [unshared(MEASURED)], np.array([_look_up(known, size)])
        times = alone
    else:
        alone = np.array([one.seconds(size) for one in found])
        times = np.array([one.shared(size) for one in found]) if contention else alone
    best = np.argmin(times, axis=0)
    calls.pattern[chosen] = len(calls.patterns) + best
    calls.patterns.extend(found)
    seconds = np.take_along_axis(alone, best[None], 0)[0]
    calls.seconds[chosen] = np.where(joined, 0.0, seconds)
    calls.alpha[chosen] = np.where(joined, 0.0, np.array([one.alpha for one in found])[best])
    calls.bytes[chosen] = size


def _look_up(known: Collective, size: Array) -> Array:
    values, number = np.unique(size, return_inverse=True)
    return np.array([known.seconds(v) for v in values.tolist()])[number.ravel()]
