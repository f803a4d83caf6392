"""The models of NCCL against a machine of hosts, queues and batches, on random programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from commlang.checks.facts import Facts, gather_facts
from commlang.checks.hangs import Hang, batch_hang
from commlang.checks.verdict import Verdict, decide
from commlang.program import Program, build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports import Backend, NcclInit, Target
from tests.reference.streams import Streams
from tests.reference.traffic import Traffic

if TYPE_CHECKING:
    from random import Random

EAGER = Target(Backend.NCCL, NcclInit.EAGER)
LAZY = Target(Backend.NCCL, NcclInit.LAZY)


def program_of(text: str, world: int) -> Program:
    return build(load_module(Source(text, "random.cl")).symbols["main"], world)


def random_program(random: Random) -> Program:
    """Traffic in which some collectives are barriers."""
    traffic = Traffic(random)
    text = traffic.text
    for group in ("", "group=g0", "group=g1"):
        if random.random() < 0.3:
            call = f"all_reduce(x, {group})" if group else "all_reduce(x)"
            text = text.replace(call, f"barrier({group})")
    return program_of(text, traffic.world)


@pytest.mark.parametrize("target", [EAGER, LAZY], ids=["eager", "lazy"])
@given(st.randoms(use_true_random=False))
def test_a_program_hangs_on_the_machine_exactly_if_the_model_says_so(
    target: Target, random: Random
) -> None:
    program = random_program(random)
    facts = gather_facts(program, target)
    if not facts.everything_meets:
        assert decide(program, target) is not Verdict.ENDS
        return
    if not _scheduled(program):
        return
    lazy = target is LAZY
    strict = Streams(program, lazy=lazy)
    loose = Streams(program, lazy=lazy, loose=True)
    wanted = Verdict.HANGS if loose.stuck else Verdict.DEPENDS if strict.stuck else Verdict.ENDS
    if strict.unmet:
        assert len(facts.nccl_models[0].messages.lone)
        assert decide(program, target) is Verdict.HANGS
        return
    if facts.deadlock:
        event("deadlock without buffers")
        assert strict.stuck
        return
    hang = facts.nccl_hang
    event(str(wanted))
    assert (hang is not None) == strict.stuck
    if hang is not None:
        assert hang.certain == loose.stuck
        _stands_still(facts, hang, loose if hang.certain else strict)


def _scheduled(program: Program) -> bool:
    """Whether there is a schedule: none for branches in sequence that hang without buffers."""
    facts = gather_facts(program)
    return not len(program.nests.key) or (facts.everything_meets and not facts.deadlock)


def _stands_still(facts: Facts, hang: Hang, machine: Streams) -> None:
    """The ring is what a hanging run shows: begun, not over, for something not begun."""
    rank = facts.program.rank
    for wait, following in zip(hang.ring, [*hang.ring[1:], hang.ring[0]], strict=True):
        assert rank[wait.awaited] == rank[following.waiting]
        awaited = machine.of_row.get(wait.awaited)
        assert awaited is None or not awaited.started
        if not hang.hosts:
            assert machine.of_row[wait.waiting].started
            assert not machine.of_row[wait.waiting].ended


@pytest.mark.parametrize("target", [EAGER, LAZY], ids=["eager", "lazy"])
@given(st.randoms(use_true_random=False))
def test_a_hazard_is_a_hang_of_the_stricter_machines(target: Target, random: Random) -> None:
    program = random_program(random)
    facts = gather_facts(program, target)
    if not facts.everything_meets or facts.deadlock or not _scheduled(program):
        return
    lazy = target is LAZY
    if Streams(program, lazy=lazy).stuck:
        return
    queue = facts.nccl_queue_hang is not None
    # Hosts are not held up in the stricter models, so neither are they in this machine.
    assert queue == _without_hosts(program, lazy, one_queue=True)
    batch = batch_hang(facts) is not None
    assert batch == _without_hosts(program, lazy, whole=True)
    event(f"one queue {queue}, whole batches {batch}")
    wanted = Verdict.DEPENDS if queue or batch else Verdict.ENDS
    assert decide(program, target) is wanted


def _without_hosts(program: Program, lazy: bool, **stricter: bool) -> bool:
    class Free(Streams):
        def _ready(self, host: object, action: object) -> bool:
            return True

    return Free(program, lazy=lazy, **stricter).stuck
