"""Where in a pattern the operations of one rank stand.

A rank runs its part of the pattern once or many times, and between two runs perhaps something
else. So what it issued is some number of whole runs, with anything between them, and the beginning
of a last one. The places are found as a finite automaton finds them: all that are possible after
each operation, with how many operations fit until there; those of the best are taken. If a dump
lost its beginning, every place is possible at first.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from commlang.operations import Kind
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlang.explain.calls import Calls
    from commlang.explain.dump import Dump, Entry, GroupKey
    from commlang.explain.job import Job
    from commlang.program import Program

MOST = 4_000_000
"""Comparisons for one rank; what takes more is not placed."""

_ALSO = {
    Kind.ALL_REDUCE: ("all_reduce", "allreduce_coalesced"),
    Kind.ALL_GATHER: ("all_gather", "_all_gather_base", "ALLGATHER_coalesced"),
    # gloo makes one kind of it out of an all_reduce.
    Kind.REDUCE_SCATTER: ("reduce_scatter", "_reduce_scatter_base", "all_reduce"),
    Kind.ALL_TO_ALL: ("all_to_all",),
    Kind.BARRIER: ("barrier", "all_reduce_barrier"),
}
_WHOLE = (Kind.SEND, Kind.RECV, Kind.ALL_REDUCE, Kind.REDUCE, Kind.BROADCAST)
"""Kinds of which an operand is what was recorded as its data."""


@record
class Placed:
    """What is known of one rank.

    `rows` gives the row of each operation, by its `order`; none if several places fit alike.
    `following` are the rows that come after the last one, up to the next that would be recorded.
    `astray` is an operation that the pattern does not have there, and `expected` the row that it
    has. `inside` says that the rank is in the middle of a run.
    """

    rows: Mapping[int, int]
    following: tuple[int, ...] = ()
    inside: bool = False
    astray: Entry | None = None
    expected: int | None = None


def place(job: Job, dump: Dump, calls: Calls, numbers: Mapping[GroupKey, int]) -> Placed:
    """Place what a rank issued in its calls.

    `numbers` are the pattern's groups of those in the dumps.
    """
    messages = "gloo" not in dump.backends
    order = calls.order(dump.rank)
    rows = [row for row in order if _is_recorded(calls.program, row, messages)]
    entries = [e for e in dump.entries if not e.name.endswith("coalesced") or not e.is_message]
    if not rows:
        return Placed({})
    if not entries:
        return Placed({}, _following(order, -1, rows[0]))
    fits = _Fits(job, calls, numbers)
    states: dict[int, int] = dict.fromkeys(range(len(rows)) if dump.lost else (0,), 0)
    trail: list[dict[int, tuple[int, bool]]] = []
    spent = 0
    for entry in entries:
        spent += len(states)
        after, came = _step(states, entry, rows, fits)
        if spent > MOST:
            return Placed({})
        if not after:
            best = max(states, key=lambda state: states[state])
            found = _walk(trail, best, entries, rows)
            return Placed(found, astray=entry, expected=rows[best])
        states = after
        trail.append(came)
    return _ended(order, rows, entries, states, trail)


def _step(
    states: dict[int, int], entry: Entry, rows: list[int], fits: _Fits
) -> tuple[dict[int, int], dict[int, tuple[int, bool]]]:
    """The states after an operation, each with its count, and where it was come from."""
    after: dict[int, int] = {}
    came: dict[int, tuple[int, bool]] = {}
    for state, count in states.items():
        fitted = fits(entry, rows[state])
        # Between two runs there may be anything, but what fits begins the next.
        if not fitted and state != 0:
            continue
        target, total = ((state + 1) % len(rows), count + 1) if fitted else (0, count)
        if target not in after or total > after[target]:
            after[target] = total
            came[target] = (state, fitted)
    return after, came


def _ended(
    order: Sequence[int],
    rows: list[int],
    entries: list[Entry],
    states: dict[int, int],
    trail: list[dict[int, tuple[int, bool]]],
) -> Placed:
    most = max(states.values())
    best = [state for state, count in states.items() if count == most]
    if not most or len(best) > 1:
        return Placed({})
    found = _walk(trail, best[0], entries, rows)
    last = found.get(entries[-1].order)
    following = _following(order, -1 if last is None else last, rows[best[0]])
    return Placed(found, following, best[0] > 0)


def _walk(
    trail: list[dict[int, tuple[int, bool]]], state: int, entries: list[Entry], rows: list[int]
) -> dict[int, int]:
    """The row of each operation that fitted, on the way that ends in a state."""
    found: dict[int, int] = {}
    for came, entry in zip(reversed(trail), reversed(entries[: len(trail)]), strict=True):
        before, fitted = came[state]
        if fitted:
            found[entry.order] = rows[before]
        state = before
    return found


def _following(order: Sequence[int], last: int, until: int) -> tuple[int, ...]:
    """The rows after `last` up to `until`, which may be those of the next run."""
    start = order.index(last) + 1 if last in order else 0
    end = order.index(until) + 1
    return tuple(order[start:end] if start < end else [*order[start:], *order[:end]])


def _is_recorded(program: Program, row: int, messages: bool) -> bool:
    kind = program.site_of(row).kind
    return kind.is_collective or (messages and kind.is_message)


def names_of(kind: Kind) -> tuple[str, ...]:
    """What the names of operations of a kind begin with in dumps."""
    return _ALSO.get(kind, (kind.name.lower(),))


class _Fits:
    """Whether an operation that was recorded can be that of a row."""

    def __init__(self, job: Job, calls: Calls, numbers: Mapping[GroupKey, int]) -> None:
        self._job = job
        self._calls = calls
        self._program = calls.program
        self._numbers = numbers
        self._known: dict[tuple[object, ...], bool] = {}

    def __call__(self, entry: Entry, row: int) -> bool:
        key = (entry.group, entry.name, entry.inputs, entry.outputs, entry.source, row)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._judge(entry, row)
        return known

    def _judge(self, entry: Entry, row: int) -> bool:
        kind = self._program.site_of(row).kind
        if not entry.name.startswith(names_of(kind)):
            return False
        if self._numbers.get(entry.group) != int(self._program.group[row]):
            return False
        if kind.is_message:
            peer = self._job.endpoints(entry)[kind is Kind.SEND]
            if peer >= 0 and peer != int(self._program.peer[row]):
                return False
        return kind not in _WHOLE or _elements(entry) == self._calls.elements(row)


def _elements(entry: Entry) -> int:
    return sum(prod(size) for size in entry.inputs or entry.outputs)
