"""Sends and recvs that found no counterpart, of dumps that record them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.explain.agree import same_size
from commlang.explain.problems import MISMATCH, MISSING, STUCK, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.explain.dump import Entry, GroupKey
    from commlang.explain.job import Job

_Channel = tuple["GroupKey", int, int]


def message_problems(job: Job) -> Iterator[Problem]:
    """For each channel (group, source, target) the first message that is not over.

    The n-th send meets the n-th recv, as NCCL pairs them, which knows no tags. Where a dump lost
    its older entries, only what has not ended is paired, the last with the last.
    """
    channels: dict[_Channel, tuple[list[Entry], list[Entry]]] = {}
    for rank, dump in job.dumps.items():
        for entry in dump.entries:
            if entry.is_message and entry.source >= 0:
                source, target = job.endpoints(entry)
                both = channels.setdefault((entry.group, source, target), ([], []))
                both[rank == target].append(entry)
    for channel in sorted(channels, key=lambda c: (c[0].name, c[1:])):
        problem = _first(job, channel, *channels[channel])
        if problem is not None:
            yield problem


def _first(job: Job, channel: _Channel, sends: list[Entry], recvs: list[Entry]) -> Problem | None:
    key, source, target = channel
    ends = (source, target)
    if any(rank not in job.dumps or job.dumps[rank].lost for rank in ends):
        sends, recvs = ([e for e in side if not e.ended] for side in (sends, recvs))
    for number in range(max(len(sends), len(recvs))):
        calls = {
            rank: side[number]
            for rank, side in zip(ends, (sends, recvs), strict=True)
            if number < len(side)
        }
        problem = _met(job, key, number + 1, calls, ends)
        if problem is not None:
            return problem
    return None


def _met(
    job: Job, key: GroupKey, number: int, calls: dict[int, Entry], ends: tuple[int, int]
) -> Problem | None:
    waiting = tuple(rank for rank, entry in calls.items() if not entry.ended)
    if len(calls) == 1:
        (other,) = (rank for rank in ends if rank not in calls)
        if not waiting:
            return None
        here = other in job.dumps
        absent, unknown = ((other,), ()) if here else ((), (other,))
        return Problem(MISSING, key, number, calls, waiting, absent, unknown)
    send, recv = (calls[rank] for rank in ends)
    if not same_size(send, recv):
        values = {rank: entry.data for rank, entry in calls.items()}
        return Problem(MISMATCH, key, number, calls, waiting or ends, differ="data", values=values)
    if waiting:
        return Problem(STUCK, key, number, calls, waiting)
    return None
