"""MPI's lock: a machine with a worker thread, in every order of its threads, on small programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import event, given
from hypothesis import strategies as st

from commlang.checks.facts import gather_facts
from commlang.checks.verdict import Verdict, decide
from commlang.operations import Kind
from commlang.transports import Backend, Target
from tests.transports.test_nccl import program_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from commlang.program import Program

MPI = Target(Backend.MPI)


class Rank(NamedTuple):
    """A rank's caller (its next row, and whether that is begun) and its worker.

    `lock` says who is inside MPI: "" for nobody, "m" for the caller, "w" for the worker.
    """

    row: int
    begun: bool
    queue: tuple[int, ...]
    running: bool
    lock: str


class Threads:
    """All states that the threads of all ranks can get to; `stuck` if one is a hang."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.kind = [Kind(k) for k in program.kind.tolist()]
        facts = gather_facts(program)
        self.partner = facts.messages.partner.tolist()
        calls = facts.collectives
        self.meeting: dict[int, list[int]] = {}
        for i in range(len(calls.start) - 1):
            rows = calls.row[calls.start[i] : calls.start[i + 1]].tolist()
            self.meeting |= dict.fromkeys(rows, rows)
        self.joins: dict[int, list[int]] = {}
        for row, wait in enumerate(program.wait.tolist()):
            self.joins.setdefault(wait, []).append(row)
        self.stuck = False
        self._explore()

    def _explore(self) -> None:
        ranks = tuple(
            Rank(self.program.rows_of(r).start, False, (), False, "")
            for r in range(self.program.world)
        )
        first = (ranks, frozenset[int](), frozenset[int]())
        seen, todo = {first}, [first]
        while todo:
            ranks, posted, over = todo.pop()
            nexts = list(self._steps(ranks, posted, over))
            if not nexts and not all(self._done(r, rank) for r, rank in enumerate(ranks)):
                self.stuck = True
                return
            for state in nexts:
                if state not in seen:
                    seen.add(state)
                    todo.append(state)

    def _done(self, number: int, rank: Rank) -> bool:
        return rank.row == self.program.rows_of(number).stop and not rank.queue

    def _steps(
        self, ranks: tuple[Rank, ...], posted: frozenset[int], over: frozenset[int]
    ) -> Iterator[tuple[tuple[Rank, ...], frozenset[int], frozenset[int]]]:
        for number, rank in enumerate(ranks):
            moves = [*self._caller(number, rank, posted, over), *self._worker(rank, posted, over)]
            for changed, new_posted, new_over in moves:
                states = (*ranks[:number], changed, *ranks[number + 1 :])
                yield states, new_posted, new_over

    def _caller(
        self, number: int, rank: Rank, posted: frozenset[int], over: frozenset[int]
    ) -> Iterator[tuple[Rank, frozenset[int], frozenset[int]]]:
        row = rank.row
        if row == self.program.rows_of(number).stop:
            return
        kind, later = self.kind[row], self.program.site_of(row).asynchronous
        after = rank._replace(row=row + 1, begun=False)
        if kind.is_message and not rank.begun:  # to post it takes the lock, to wait holds it
            if not rank.lock:
                waiting = rank._replace(begun=True, lock="m")
                yield after if later else waiting, posted | {row}, over
        elif kind.is_message:
            if self.partner[row] in posted:
                yield after._replace(lock=""), posted, over
        elif kind.is_collective and not rank.begun:
            queue = (*rank.queue, row)
            go_on = after if later else rank._replace(begun=True)
            yield go_on._replace(queue=queue), posted, over
        elif kind.is_collective:
            if row in over:
                yield after, posted, over
        else:
            yield from self._wait(rank, after, posted, over)

    def _wait(
        self, rank: Rank, after: Rank, posted: frozenset[int], over: frozenset[int]
    ) -> Iterator[tuple[Rank, frozenset[int], frozenset[int]]]:
        joined = self.joins.get(rank.row, [])
        messages = [row for row in joined if self.kind[row].is_message]
        if not messages:
            if all(row in over for row in joined):
                yield after, posted, over
        elif not rank.begun:
            if not rank.lock:
                yield rank._replace(begun=True, lock="m"), posted, over
        elif self.partner[messages[0]] in posted:
            yield after._replace(lock=""), posted, over

    def _worker(
        self, rank: Rank, posted: frozenset[int], over: frozenset[int]
    ) -> Iterator[tuple[Rank, frozenset[int], frozenset[int]]]:
        if not rank.queue:
            return
        row = rank.queue[0]
        if not rank.running:
            if not rank.lock:
                yield rank._replace(running=True, lock="w"), posted | {row}, over
        elif all(other in posted for other in self.meeting[row]):
            rest = rank._replace(queue=rank.queue[1:], running=False, lock="")
            yield rest, posted, over | {row}


def _text(random: Random) -> str:
    """Two ranks with the same few meetings, some asynchronous, in orders that differ a little."""
    parts: list[list[str]] = [[], []]
    for number in range(random.randint(2, 4)):
        if random.random() < 0.5:
            one = random.randrange(2)
            parts[one].append(f"send(x, dst={1 - one})")
            parts[1 - one].append(f"recv(y, src={one})")
        else:
            for part in parts:
                part.append("all_reduce(z)")
        for part in parts:
            if len(part) > 1 and random.random() < 0.25:
                part[-2:] = reversed(part[-2:])
        del number
    lines = ["pattern main(x: float32[n], y: float32[n], z: float32[n], n = 4):"]
    for rank, part in enumerate(parts):
        lines.append(f"    if rank == {rank}:")
        waits: list[str] = []
        for i, call in enumerate(part):
            if random.random() < 0.5:
                lines.append(f"        h{i} = async {call}")
                waits.append(f"        wait(h{i})")
            else:
                lines.append(f"        {call}")
            while waits and random.random() < 0.5:
                lines.append(waits.pop(random.randrange(len(waits))))
        lines += waits
    return "\n".join(lines) + "\n"


@given(st.randoms(use_true_random=False))
def test_a_program_may_hang_exactly_if_some_order_of_the_threads_hangs(random: Random) -> None:
    program = program_of(_text(random), 2)
    facts = gather_facts(program, MPI)
    if not facts.everything_meets or facts.deadlock:
        return
    verdict = decide(program, MPI)
    event(str(verdict))
    assert (verdict is Verdict.DEPENDS) == Threads(program).stuck
