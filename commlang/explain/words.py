"""Words for ranks, calls and places."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlang.explain.dump import Entry
    from commlang.explain.job import Job
    from commlang.explain.problems import Problem


def ranks_text(ranks: Iterable[int]) -> str:
    """`rank 3`, or `ranks 0 to 2, 5`."""
    known = sorted(set(ranks))
    parts: list[str] = []
    at = 0
    while at < len(known):
        end = at
        while end + 1 < len(known) and known[end + 1] == known[end] + 1:
            end += 1
        if end - at < 2:
            parts += [str(rank) for rank in known[at : end + 1]]
        else:
            parts.append(f"{known[at]} to {known[end]}")
        at = end + 1
    return f"rank{'s' if len(known) > 1 else ''} {', '.join(parts)}"


def verb(ranks: Sequence[int], one: str, many: str) -> str:
    """The form of a verb for so many ranks."""
    return one if len(ranks) == 1 else many


class Speaker:
    """How calls are told; one that knows the pattern tells them in its lines."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def statement(self, problem: Problem, rank: int) -> str | None:
        """The pattern's statement of a rank's part in a call, if a pattern has one."""
        del problem, rank
        return None

    def next_of(self, rank: int) -> Sequence[str]:
        """What the pattern has next for a rank, after what it issued last."""
        del rank
        return ()

    def messages_of(self, rank: int) -> Sequence[str] | None:
        """What is known of the messages that the pattern has next for a rank; None: nothing."""
        del rank
        return None

    def astray(self, rank: int) -> tuple[Entry, str] | None:
        """The operation with which a rank left the pattern, and what the pattern has there."""
        del rank
        return None

    def inside(self) -> Sequence[int]:
        """The ranks that are in the middle of the pattern."""
        return ()

    def call(self, problem: Problem, rank: int | None = None) -> str:
        """The call that did not end, as the rank has it (by default one that waits)."""
        entry = problem.call if rank is None else problem.calls.get(rank, problem.call)
        statement = self.statement(problem, entry.rank if rank is None else rank)
        return statement or f"{entry.call} ({self.turn(problem)})"

    def turn(self, problem: Problem) -> str:
        """Which call it is: `call 3 on the world`, `message 2 from rank 0 to 1 on the world`."""
        group = self.job.groups[problem.group]
        if not problem.call.is_message:
            return f"call {problem.number} on {group}"
        source, target = self.job.endpoints(problem.call)
        return f"message {problem.number} from rank {source} to {target} on {group}"

    def entry(self, entry: Entry) -> str:
        """An operation that was issued, whatever became of it."""
        kind = "message" if entry.is_message else "call"
        return f"{entry.call} ({kind} {entry.number} on {self.job.groups[entry.group]})"


def placed(entry: Entry) -> str:
    """` at file:line in function`, or nothing if no frames were kept."""
    return f" at {entry.site}" if entry.site else ""
