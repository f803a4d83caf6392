"""What must hold of every simulation: nothing is lost, and slower machines end no earlier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commlang.errors import PatternError
from commlang.operations import Kind
from commlang.simulate import Simulation, Straggler, simulate
from tests.reference.traffic import Traffic
from tests.simulate.cases import program_of, switch, times

if TYPE_CHECKING:
    from random import Random

    from commlang.program import Program
    from commlang.topology import Machine

PROGRAMS = st.randoms(use_true_random=False)
EXAMPLES = settings(max_examples=20)


def drawn(random: Random) -> Program:
    traffic = Traffic(random)
    return program_of(traffic.text, traffic.world)


def found(program: Program, machine: Machine, *, contention: bool, slow: float = 1) -> Simulation:
    try:
        stragglers = [Straggler(0, slow)]
        return simulate(program, machine, contention=contention, stragglers=stragglers)
    except PatternError:
        assume(False)
        raise


@given(PROGRAMS, st.booleans())
@EXAMPLES
def test_nothing_is_lost(random: Random, contention: bool) -> None:
    program, machine = drawn(random), switch(8)
    one = found(program, machine, contention=contention)
    assert np.allclose(one.ranks.busy + one.ranks.wait, one.makespan)
    assert all(
        (column >= 0).all() for column in (one.ranks.compute, one.ranks.late, one.ranks.idle)
    )
    assert one.path.seconds.sum() == pytest.approx(one.makespan)
    assert (one.path.seconds >= 0).all()
    assert (one.timing.end >= one.timing.start).all()
    sends = np.flatnonzero(program.kind == Kind.SEND)
    if not program.is_collective.any():
        sent = program.operands.length[program.first[sends]].sum() * 4
        assert one.link_bytes.sum() == 2 * sent, "each message passes two channels of a switch"


@given(PROGRAMS)
@EXAMPLES
def test_slower_machines_end_no_earlier(random: Random) -> None:
    program = drawn(random)
    base = found(program, switch(8), contention=False)
    slower = (
        found(program, switch(8, latency=3000), contention=False),
        found(program, switch(8, per_byte=9), contention=False),
        found(program, switch(8, o=2000), contention=False),
        found(program, switch(8, g=5000), contention=False),
        found(program, switch(8), contention=False, slow=1.5),
    )
    for other in slower:
        assert (other.timing.end >= base.timing.end).all()


@given(PROGRAMS)
@EXAMPLES
def test_contention_ends_no_earlier_in_all(random: Random) -> None:
    program = drawn(random)
    free = found(program, switch(8), contention=False)
    shared = found(program, switch(8), contention=True)
    assert shared.makespan >= free.makespan


def test_what_never_ends_is_refused() -> None:
    ring = """\
pattern main(x: float32[4], y: float32[4]):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
"""
    for engine in ("python", "numpy"):
        with pytest.raises(PatternError, match="deadlock: 3 ranks wait for one another"):
            times(ring, 3, engine=engine)
    lone = "pattern main(x: float32[4]):\n    if rank == 0:\n        send(x, dst=1)\n"
    with pytest.raises(PatternError, match="CL202"):
        times(lone, 2)
    with pytest.raises(PatternError, match="deadlock"):
        times(ring, 3, eager=1)
    assert times(ring, 3, eager=16).makespan > 0, "small ones fit into buffers"
