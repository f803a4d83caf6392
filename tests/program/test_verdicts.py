"""Random communication programs: the verdicts against a machine that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from commlang.checks import deadlock, implementation
from commlang.checks.facts import Facts, gather_facts
from commlang.program import Program, build, cycles
from commlang.program.constraints import rendezvous
from commlang.resolve.modules import load_module
from commlang.source import Source
from tests.reference.machine import Machine
from tests.reference.traffic import Traffic

if TYPE_CHECKING:
    from random import Random


def _program(text: str, world: int) -> Program:
    return build(load_module(Source(text, "random.cl")).symbols["main"], world)


@given(st.randoms(use_true_random=False))
def test_a_pattern_hangs_in_the_machine_exactly_if_it_is_refused(random: Random) -> None:
    traffic = Traffic(random)
    program = _program(traffic.text, traffic.world)
    facts = gather_facts(program)
    if any(fault.code != "CL211" for fault in facts.collective_faults):
        return  # wrong collectives meet; the machine does not model that
    strict, loose = Machine(program), Machine(program, loose=True)
    codes = _codes(facts)
    met = not len(facts.messages.lone) and bool(facts.collectives.whole.all())
    assert strict.stuck == bool(codes or not met), traffic.text
    if met:
        wanted = [] if not strict.stuck else ["CL201"] if loose.stuck else ["CL220"]
        event(str(wanted))
        assert codes == wanted, traffic.text
        if codes:
            _every_wait_stands_still(facts, loose if codes == ["CL201"] else strict)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycles, "_MAX_LEVELS", 0)  # decide by strong components instead
        assert _codes(facts) == codes, traffic.text
        if codes and met:
            _every_wait_stands_still(facts, loose if codes == ["CL201"] else strict)


def _codes(facts: Facts) -> list[str]:
    return [d.code for rule in (deadlock, implementation) for d in rule.check(facts)]


def _every_wait_stands_still(facts: Facts, machine: Machine) -> None:
    """The cycle is what a hanging run shows: begun, not ended, for something not begun."""
    edges = rendezvous(
        facts.program,
        facts.messages,
        facts.collectives,
        facts.points,
        rooted_meet=not machine.loose,
    )
    cycle = cycles.find_cycle(facts.points, edges)
    assert cycle is not None
    ring = deadlock.waits(edges, cycle)
    rank = facts.program.rank
    for wait, following in zip(ring, [*ring[1:], ring[0]], strict=True):
        assert wait.waiting in machine.started
        assert wait.waiting not in machine.ended
        assert wait.awaited not in machine.started
        assert rank[wait.awaited] == rank[following.waiting]


def test_a_cycle_of_many_equal_edges_is_found_by_components_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (
        "pattern main(x: float32[n], y: float32[n], n = 512):\n"
        "    parallel for i in range(256):\n"
        "        send(x[i], dst=ranks.next)\n"
        "    parallel for i in range(256):\n"
        "        recv(y[i], src=ranks.prev)\n"
    )
    facts = gather_facts(_program(text, 2))
    assert _codes(facts) == ["CL201"]
    monkeypatch.setattr(cycles, "_MAX_LEVELS", 0)
    assert _codes(facts) == ["CL201"]


def test_the_ring_is_the_one_that_a_run_shows() -> None:
    text = """\
pattern main(x: float32[n], y: float32[n], n = 4):
    if rank == 0:
        recv(y, src=1, tag=1)
        send(x, dst=1, tag=1)
        recv(y, src=1)
    else:
        send(x, dst=0)
        recv(y, src=0, tag=1)
        send(x, dst=0, tag=1)
"""
    (found,) = deadlock.check(gather_facts(_program(text, 2)))
    assert found.extra["cycle"] == [
        {"rank": 0, "waits_at": "random.cl:3:9", "for_rank": 1, "to_reach": "random.cl:9:9"},
        {"rank": 1, "waits_at": "random.cl:7:9", "for_rank": 0, "to_reach": "random.cl:5:9"},
    ]
