"""Where a group's collectives stop fitting together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.explain.agree import SYMMETRIC, disagreement
from commlang.records import entity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlang.explain.dump import Entry, GroupKey
    from commlang.explain.job import Job

MISMATCH, MISSING, STUCK, STALE = "mismatch", "missing", "stuck", "stale"


@entity
class Problem:
    """A call on a group, or a message, that did not come to its end.

    `kind` is "mismatch" (calls that meet differ), "missing" (`absent` ranks have not come),
    "stuck" (all have come, alike) or "stale" (it ended without `absent` ones, which cannot be).
    `calls` are by rank; `waiting` are the ranks whose call has not ended, or on gloo may have
    failed. `unknown` are ranks of which the dumps do not tell whether they came.
    """

    kind: str
    group: GroupKey
    number: int
    calls: Mapping[int, Entry]
    waiting: tuple[int, ...]
    absent: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    differ: str = ""
    values: Mapping[int, str] | None = None

    @property
    def call(self) -> Entry:
        """One of the calls, that of a rank that waits if there is any."""
        return self.calls[self.waiting[0] if self.waiting else min(self.calls)]


def problems_of(job: Job, key: GroupKey) -> Iterator[Problem]:
    """The first call of a group that is stuck, and the first that differs or that some lack.

    What gloo says is over while some have not come counts only if there is nothing else: it may
    have failed, or be one that its other ranks need not wait for.
    """
    meetings = job.calls[key]
    stuck, over = False, None
    for number in sorted(meetings):
        problem = _problem(job, key, number, meetings[number])
        if problem is None or (problem.kind == STUCK and stuck):
            continue
        if not problem.waiting:
            over = over or replace(problem, waiting=tuple(problem.calls))
            continue
        stuck = stuck or problem.kind == STUCK
        yield problem
        if problem.kind != STUCK:
            return
    if over is not None:
        yield over


def _problem(job: Job, key: GroupKey, number: int, calls: dict[int, Entry]) -> Problem | None:
    members = job.members(key)
    absent, unknown = _others(job, key, number, calls)
    pending = tuple(rank for rank, entry in calls.items() if not entry.ended)
    differing = disagreement(calls, len(members))
    if differing is not None:
        what, values = differing
        waiting = pending or tuple(calls)
        return Problem(MISMATCH, key, number, calls, waiting, absent, unknown, what, values)
    if absent:
        return _missing(key, number, calls, absent, unknown)
    if not pending:
        return None
    doubtful = bool(unknown) or not job.is_listed(key)
    kind = MISSING if doubtful else STUCK
    return Problem(kind, key, number, calls, pending, (), unknown)


def _missing(
    key: GroupKey,
    number: int,
    calls: dict[int, Entry],
    absent: tuple[int, ...],
    unknown: tuple[int, ...],
) -> Problem | None:
    """Ranks that have not come; nobody waits if gloo says that it is over, or NCCL that it is well.

    An operation that ends nowhere before all have come did not end well.
    """
    name = next(iter(calls.values())).name
    waiting = tuple(rank for rank, entry in calls.items() if not entry.ended)
    both_ways = name.startswith(SYMMETRIC)
    if both_ways and any(entry.sure for entry in calls.values()):
        return Problem(STALE, key, number, calls, waiting, absent, unknown)
    if both_ways:
        waiting = tuple(calls)
    if not waiting and all(entry.sure for entry in calls.values()):
        return None
    return Problem(MISSING, key, number, calls, waiting, absent, unknown)


def _others(
    job: Job, key: GroupKey, number: int, calls: dict[int, Entry]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The members of a group that did not come, and those of which it is not known."""
    absent: list[int] = []
    unknown: list[int] = []
    for rank in job.members(key):
        if rank in calls:
            continue
        issued = _issued(job, key, number, rank)
        if issued is None:
            unknown.append(rank)
        elif not issued:
            absent.append(rank)
    return tuple(absent), tuple(unknown)


def _issued(job: Job, key: GroupKey, number: int, rank: int) -> bool | None:
    """Whether a rank issued a call that its dump does not have; None if nobody can tell."""
    dump = job.dumps.get(rank)
    if dump is None:
        return None
    group = dump.groups.get(key)
    highest = job.highest.get((rank, key))
    if highest is not None and number < highest:
        return True
    if highest is not None or not dump.lost:
        # NCCL counts a group's collectives there, gloo all of its operations.
        counted = group is not None and "gloo" not in dump.backends and group.last >= number
        return bool(counted)
    return None
