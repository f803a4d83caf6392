"""What the roots mean: a headline, and the evidence for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.explain.clues import order_clues, others_text, waiting_lines
from commlang.explain.problems import MISSING, STUCK
from commlang.explain.waits import CYCLE
from commlang.explain.words import Speaker, placed, ranks_text, verb
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.explain.problems import Problem
    from commlang.explain.waits import Root

_ROOTED = ("broadcast", "reduce", "scatter", "gather")


@record
class Finding:
    """One thing that is wrong: `ranks` is where it comes from, `waiting` whom it holds up.

    `kind` is "missing", "mismatch", "cycle", "stuck", "stale", "no-dump", "groups" or
    "unfinished".
    """

    kind: str
    headline: str
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    evidence: tuple[str, ...]


def finding_of(root: Root, speaker: Speaker) -> Finding:
    """A root in words."""
    problem = root.problems[0]
    match root.kind:
        case "cycle":
            headline, evidence = _cycle(root, speaker)
        case "mismatch":
            root, headline, evidence = _mismatch(root, problem, speaker)
        case "stuck":
            headline, evidence = _stuck(problem, speaker)
        case "stale":
            headline, evidence = _stale(problem, speaker)
        case _:
            headline, evidence = _missing(root, problem, speaker)
    own = {CYCLE: root.problems, MISSING: (problem,)}.get(root.kind, (problem,))
    if not root.ranks:
        own = tuple(p for p in root.problems if not p.absent and not p.unknown)
    later = [p for p in root.problems if p not in own]
    evidence = [*evidence, *(f"so {_consequence(p, speaker)}" for p in later)]
    waiting = tuple(sorted({*root.waiting, *(problem.waiting if root.kind == STUCK else ())}))
    return Finding(root.kind, headline, root.ranks, waiting, tuple(evidence))


def _missing(root: Root, problem: Problem, speaker: Speaker) -> tuple[str, list[str]]:
    dumps = speaker.job.dumps
    call = speaker.call(problem, min(root.ranks, default=None))
    waits = f"{ranks_text(root.waiting)} {verb(root.waiting, 'waits', 'wait')}"
    evidence = waiting_lines(problem, speaker)
    if not root.ranks:
        return _unlisted(root, speaker)
    gone = [rank for rank in root.ranks if rank not in dumps]
    it = verb(root.ranks, "it", "them")
    if len(gone) == len(root.ranks):
        headline = f"{ranks_text(gone)} left no dump, and {waits} for {it} in {call}"
        return headline, [*evidence, f"{others_text(problem, speaker)}"]
    if problem.unknown and not problem.absent:
        what = verb(root.ranks, "dump has", "dumps have")
        headline = (
            f"{waits} in {call}, and of {ranks_text(root.ranks)} the {what} lost whether "
            f"{verb(root.ranks, 'it', 'they')} issued it"
        )
        return headline, evidence
    have = verb(root.ranks, "has", "have")
    headline = f"{ranks_text(root.ranks)} {have} not issued {_asked(problem, call)}; {waits}"
    return headline, [*evidence, *(line for r in root.ranks for line in _idle(r, speaker))]


def _unlisted(root: Root, speaker: Speaker) -> tuple[str, list[str]]:
    """Calls on groups of which only those that wait are known."""
    own = [p for p in root.problems if not p.absent and not p.unknown]
    lines = [_consequence(p, speaker) for p in own]
    hint = "gloo's dumps do not list the ranks of a group; with the pattern they are known"
    if len(own) == 1:
        headline = f"{_waits_in(own[0], speaker)} for ranks that the dumps do not name"
        return headline, [*waiting_lines(own[0], speaker), hint]
    waiting = {rank for p in own for rank in p.waiting}
    headline = (
        f"{ranks_text(waiting)} wait in different groups, for one another if they are in each "
        "other's"
    )
    return headline, [*lines, hint]


def _asked(problem: Problem, call: str) -> str:
    """The call that is lacking: of a message, its other half."""
    if not problem.call.is_message or call.startswith("`"):
        return call
    other = {"send": "recv", "recv": "send"}.get(problem.call.name, "counterpart")
    return f"the {other} for {call}"


def _idle(rank: int, speaker: Speaker) -> list[str]:
    """What is known of a rank that nothing in the dumps holds up."""
    if rank not in speaker.job.dumps:
        return [f"rank {rank} left no dump"]
    last = speaker.job.last_of(rank)
    if last is None:
        return [f"rank {rank} has issued nothing that was recorded", *_elsewhere(rank, speaker)]
    lines = [f"rank {rank} last issued {speaker.entry(last)}, which is over{placed(last)}"]
    following = speaker.next_of(rank)
    if following:
        lines.append(f"rank {rank} has next in the pattern: {', then '.join(following)}")
    return [*lines, *_elsewhere(rank, speaker)]


def _elsewhere(rank: int, speaker: Speaker) -> list[str]:
    """Where a rank can be that waits in no recorded call."""
    known = speaker.messages_of(rank)
    where = "is in work of its own, or gone"
    if not speaker.job.records_messages and (known is None or known):
        where = "is in a send or recv, which gloo's dumps do not have, or in work of its own"
    return [f"rank {rank} waits in no recorded call: it {where}", *(known or ())]


def _mismatch(root: Root, problem: Problem, speaker: Speaker) -> tuple[Root, str, list[str]]:
    values = problem.values or {}
    evidence = waiting_lines(problem, speaker, said=True)
    astray = [r for r in values if (a := speaker.astray(r)) and a[0] is problem.calls[r]]
    if astray and len(astray) < len(values):
        root = replace(root, ranks=tuple(astray))
        return root, _against_pattern(problem, astray, speaker), evidence
    odd = root.ranks if len(root.ranks) < len(values) else ()
    sides: dict[str, list[int]] = {}
    for rank, value in values.items():
        sides.setdefault(value, []).append(rank)
    did, to = _WORDS.get(problem.differ, _WORDS["size"])
    to = to.format(problem.call.name)
    parts = {told: ranks for told, ranks in sides.items() if not set(ranks) <= set(odd)}
    rest = ", ".join(f"{ranks_text(ranks)} {did} {told}" for told, ranks in parts.items())
    turn = speaker.turn(problem)
    if not odd:
        headline = f"{rest}{to} ({turn}), and the dumps do not tell which is meant"
    else:
        first = ", ".join(
            f"{ranks_text(ranks)} {did} {told}"
            for told, ranks in sides.items()
            if told not in parts
        )
        headline = f"{first}{to} where {rest} ({turn})"
    return root, headline, [*evidence, *order_clues(problem, speaker)]


_WORDS = {
    "operation": ("called", ""),
    "root": ("took part", " in {}"),
    "size": ("gave", " to {}"),
    "data": ("had", " in a message"),
}
"""What ranks did that differ in something, and in what."""


def _against_pattern(problem: Problem, astray: list[int], speaker: Speaker) -> str:
    """Calls that differ where the pattern tells which of them is meant."""
    sides: dict[tuple[str, str], list[int]] = {}
    for rank in astray:
        found = speaker.astray(rank)
        if found:
            sides.setdefault((found[0].call, found[1]), []).append(rank)
    told = [
        f"{ranks_text(ranks)} called {call} where the pattern has {expected}"
        for (call, expected), ranks in sides.items()
    ]
    return f"{', '.join(told)} ({speaker.turn(problem)})"


def _cycle(root: Root, speaker: Speaker) -> tuple[str, list[str]]:
    headline = f"{ranks_text(root.ranks)} wait for one another, each in another call"
    evidence = [_consequence(p, speaker) for p in root.problems]
    return headline, [
        *evidence,
        "ranks issue what they share in different orders; give all of them one order",
    ]


def _consequence(problem: Problem, speaker: Speaker) -> str:
    return _waits_in(problem, speaker) + placed(problem.call)


def _waits_in(problem: Problem, speaker: Speaker) -> str:
    missed = problem.absent or problem.unknown
    whom = f" for {ranks_text(missed)}" if missed else ""
    waits = verb(problem.waiting, "waits", "wait")
    return f"{ranks_text(problem.waiting)} {waits}{whom} in {speaker.call(problem)}"


def _stuck(problem: Problem, speaker: Speaker) -> tuple[str, list[str]]:
    call = speaker.call(problem)
    headline = (
        f"all ranks issued {call} alike, but on {ranks_text(problem.waiting)} it has not ended"
    )
    evidence = waiting_lines(problem, speaker)
    evidence.append("it was still running, or a process is stopped, or a connection is broken")
    if problem.call.name.startswith(_ROOTED):
        evidence.append("dumps do not record the root: ranks that give different ones hang so")
    return headline, evidence


def _stale(problem: Problem, speaker: Speaker) -> tuple[str, list[str]]:
    ended = [rank for rank, entry in problem.calls.items() if entry.ended]
    headline = (
        f"the dumps are of different moments: {speaker.call(problem)} has ended on "
        f"{ranks_text(ended)}, which takes all of its ranks, and in the "
        f"{verb(problem.absent, 'dump', 'dumps')} of {ranks_text(problem.absent)} it is not issued"
    )
    return headline, ["take the dumps of all ranks again, at one moment"]


def unfinished(inside: Sequence[int], speaker: Speaker) -> Finding:
    """Ranks that are in the middle of the pattern, where nothing that was recorded waits."""
    headline = f"no recorded call waits, but {ranks_text(inside)} did not come to the pattern's end"
    evidence = [line for rank in inside[:8] for line in _idle(rank, speaker)]
    return Finding("unfinished", headline, tuple(inside), (), tuple(evidence))


def no_dump(missing: Sequence[int]) -> Finding:
    """Ranks without a dump, where nothing else is wrong."""
    headline = f"{ranks_text(missing)} left no dump; in the others nothing waits"
    return Finding("no-dump", headline, tuple(missing), (), ())
