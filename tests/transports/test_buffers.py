"""Finite buffers against a machine whose channels hold so many messages, on random programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from commlang.checks.facts import gather_facts
from commlang.checks.verdict import Verdict, decide
from commlang.operations import Kind
from commlang.program import Program, build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports import RENDEZVOUS, Backend, Target, buffers
from tests.reference.machine import Machine
from tests.reference.traffic import Traffic

if TYPE_CHECKING:
    from random import Random

MPI = Target(Backend.MPI)


def program_of(text: str, world: int) -> Program:
    return build(load_module(Source(text, "random.cl")).symbols["main"], world)


class Buffered(Machine):
    """A send ends once fewer than `capacity` messages of its channel lie before it."""

    def __init__(self, program: Program, capacity: int) -> None:
        self.capacity = capacity
        super().__init__(program)

    def _can_end(self, row: int) -> bool:
        if self.kind[row] is not Kind.SEND:
            return super()._can_end(row)
        channel = [other for other in self.partner if self._channel(other) == self._channel(row)]
        place = sorted(channel).index(row)
        return place < self.capacity or self.partner[sorted(channel)[place - self.capacity]] in (
            self.started
        )

    def _channel(self, row: int) -> tuple[int, ...]:
        program = self.program
        columns = (program.kind, program.rank, program.peer, program.group, program.tag)
        return tuple(int(column[row]) for column in columns)


@given(st.randoms(use_true_random=False))
def test_the_least_capacity_is_the_first_with_which_the_machine_ends(random: Random) -> None:
    traffic = Traffic(random)
    program = program_of(traffic.text, traffic.world)
    facts = gather_facts(program)
    if not facts.everything_meets:
        return
    bound = len(program) + 3
    ends = [not Buffered(program, capacity).stuck for capacity in range(bound)]
    for capacity in range(3):
        assert buffers.graph(facts.events, capacity).hangs() != ends[capacity]
    if ends[0]:
        return
    wanted = ends.index(True) if True in ends else None
    event(f"buffers {wanted}")
    assert buffers.least_capacity(facts.events) == wanted


@pytest.mark.parametrize("burst", [1, 2, 3, 5, 8])
def test_a_burst_before_the_answer_needs_as_many_buffers(burst: int) -> None:
    text = f"""\
pattern main(x: float32[n], y: float32[n], n = 4):
    for i in range({burst}):
        send(x, dst=1 - rank)
    for i in range({burst}):
        recv(y, src=1 - rank)
"""
    program = program_of(text, 2)
    assert gather_facts(program).capacity == burst
    assert decide(program, RENDEZVOUS) is Verdict.HANGS
    assert decide(program, MPI) is Verdict.DEPENDS


def test_no_buffer_helps_a_ring_of_recvs() -> None:
    text = """\
pattern main(x: float32[n], y: float32[n], n = 4):
    recv(y, src=ranks.prev)
    send(x, dst=ranks.next)
"""
    program = program_of(text, 3)
    assert gather_facts(program).capacity is None
    assert decide(program, MPI) is Verdict.HANGS


def test_a_search_that_would_take_too_long_says_that_some_number_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """\
pattern main(x: float32[n], y: float32[n], n = 4):
    for i in range(9):
        send(x, dst=1 - rank)
    for i in range(9):
        recv(y, src=1 - rank)
"""
    monkeypatch.setattr(buffers, "_WORK", 50)
    assert gather_facts(program_of(text, 2)).capacity == 0
