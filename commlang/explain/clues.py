"""Evidence: where ranks wait, who came, and what a call that differs may have been meant for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.explain.agree import SYMMETRIC, odd_ones, same_call
from commlang.explain.words import Speaker, placed, ranks_text, verb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.explain.dump import Entry
    from commlang.explain.problems import Problem

_MOST_PLACES = 8


def waiting_lines(problem: Problem, speaker: Speaker, *, said: bool = False) -> list[str]:
    """Per place in the program, the ranks that wait there; with `said`, with what they called."""
    places: dict[tuple[str, str], list[int]] = {}
    for rank, entry in sorted(problem.calls.items()):
        if not said and rank not in problem.waiting:
            continue
        told = _called(problem, rank, speaker) if said else ""
        state = "" if said else _state(entry)
        places.setdefault((told, state + placed(entry)), []).append(rank)
    lines = [
        f"{ranks_text(ranks)} {told or verb(ranks, 'waits', 'wait')}{rest}"
        for (told, rest), ranks in places.items()
        if told or rest
    ]
    if len(lines) > _MOST_PLACES:
        lines[_MOST_PLACES:] = [f"… and {len(lines) - _MOST_PLACES} more"]
    return lines


def _called(problem: Problem, rank: int, speaker: Speaker) -> str:
    statement = speaker.statement(problem, rank)
    return f"called {statement or problem.calls[rank].call}"


def _state(entry: Entry) -> str:
    if entry.timed_out:
        return " (it timed out)"
    if entry.ended and not entry.sure:
        well = "" if entry.name.startswith(SYMMETRIC) else " or needs no other rank"
        return f" (it is over there: it failed or timed out{well}, or the other dump is older)"
    return ""


def others_text(problem: Problem, speaker: Speaker) -> str:
    """Who else came."""
    del speaker
    return f"{ranks_text(problem.calls)} {verb(list(problem.calls), 'has', 'have')} issued it"


def order_clues(problem: Problem, speaker: Speaker) -> list[str]:
    """Whether the calls fit again if one was left out, or if two changed places."""
    meetings = speaker.job.calls.get(problem.group, {})
    if problem.call.is_message or problem.values is None:
        return []
    odd = odd_ones(problem.values) or sorted(problem.values)[1:]
    rest = [rank for rank in problem.values if rank not in odd]
    if not rest:
        return []
    following = meetings.get(problem.number + 1, {})
    lines: list[str] = []
    for rank in odd:
        clue = _clue(problem.calls, following, rest[0], rank)
        lines += [clue] if clue else []
    return lines


def _clue(
    now: Mapping[int, Entry], following: Mapping[int, Entry], one: int, other: int
) -> str | None:
    later_one, later_other = following.get(one), following.get(other)
    skipped = later_one is not None and same_call(later_one, now[other])
    extra = later_other is not None and same_call(later_other, now[one])
    if skipped and extra:
        return f"rank {other} issued the same two calls as rank {one} in the other order"
    if skipped:
        return (
            f"rank {one} issued what rank {other} did one call later: rank {other} left out "
            f"{now[one].call}, or rank {one} has it too much"
        )
    if extra:
        return (
            f"rank {other} issued what rank {one} did one call later: rank {one} left out "
            f"{now[other].call}, or rank {other} has it too much"
        )
    return None
