"""All forms of the engine find the same times, to the last digit."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commlang.errors import PatternError, UsageError
from commlang.program import build
from commlang.simulate import Simulation, simulate
from commlang.simulate import run as engines
from commlang.simulate.compiled import cache_folder
from commlang.simulate.messages import messages_of
from commlang.simulate.sizes import Bytes
from commlang.simulate.wiring import wire
from commlang.verify import find_pattern
from tests.reference.traffic import Traffic
from tests.simulate.cases import nodes, program_of, switch, times

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from commlang.program import Program
    from commlang.topology import Machine

WITH_NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
MACHINES = [switch(6), nodes(3, 2), nodes(6, 1)]


def assert_same(one: Simulation, other: Simulation) -> None:
    for name in ("point", "binder", "begin", "end"):
        found, wanted = getattr(other.clock, name), getattr(one.clock, name)
        assert np.array_equal(found, wanted, equal_nan=True), name
    wanted, found = (s.clock.moved[np.argsort(s.wiring.send)] for s in (one, other))
    assert np.array_equal(found, wanted), "messages may be numbered otherwise"
    assert one.critical.tolist() == other.critical.tolist()


def both(program: Program, machine: Machine, *forms: str, **options: Any) -> None:
    one, *others = (simulate(program, machine, engine=form, **options) for form in forms)  # pyright: ignore[reportArgumentType]
    for other in others:
        assert_same(one, other)


@given(st.randoms(use_true_random=False), st.sampled_from(MACHINES), st.integers(0, 9))
@settings(max_examples=25)
def test_levels_and_kernel_agree_on_random_programs(
    random: Random, machine: Machine, seed: int
) -> None:
    traffic = Traffic(random)
    program = program_of(traffic.text, traffic.world)
    try:
        both(program, machine, "python", "numpy", contention=False, jitter=0.3, seed=seed)
    except PatternError:
        assume(False)


LIBRARY = (
    *("ring_all_reduce", "halving_doubling_all_reduce", "one_f_one_b", "interleaved_1f1b"),
    *("training_step_3d", "hierarchical_all_reduce", "pairwise_all_to_all", "star_all_reduce"),
)


@pytest.mark.parametrize("name", LIBRARY)
def test_levels_and_kernel_agree_on_the_library(name: str) -> None:
    program = build(find_pattern(name), 8)
    costs = {n: 300.0 for n in ("forward", "backward") if n in {s.name for s in program.sites}}
    both(program, nodes(2, 4), "python", "numpy", contention=False, costs=costs)


@WITH_NUMBA
@pytest.mark.slow
def test_numba_agrees_on_random_programs_and_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from random import Random

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cases = [(build(find_pattern(name), 8), nodes(2, 4)) for name in LIBRARY]
    for seed in range(60):
        traffic = Traffic(Random(seed))
        cases.append((program_of(traffic.text, traffic.world), MACHINES[seed % 3]))
    for number, (program, machine) in enumerate(cases):
        options = {"contention": number % 2 > 0, "eager": number % 3 * 8, "jitter": 0.1}
        try:
            both(program, machine, "python", "numba", **options)
        except PatternError:
            assert number >= len(LIBRARY)
    assert list(tmp_path.rglob("*.nbi")), "the machine code is kept where the user said"


def test_both_ways_to_wire_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function that numba compiles, as Python."""
    from commlang.simulate import compiled

    monkeypatch.setattr(compiled, "compiled", lambda function: function)  # pyright: ignore[reportUnknownLambdaType]
    for name in LIBRARY:
        program = build(find_pattern(name), 8)
        slow, fast = wire(program), wire(program, fast=True)
        columns = ("pointer", "start", "end", "after", "pending", "role", "last", "member")
        for column in columns:
            assert np.array_equal(getattr(slow, column), getattr(fast, column)), column
        order = [np.argsort(w.send) for w in (slow, fast)]
        assert np.array_equal(slow.recv[order[0]], fast.recv[order[1]])
        assert np.array_equal(slow.queued[order[0]], fast.queued[order[1]])


def test_more_channels_than_the_small_table_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    from commlang.simulate import compiled, wiring

    monkeypatch.setattr(compiled, "compiled", lambda function: function)  # pyright: ignore[reportUnknownLambdaType]
    program = build(find_pattern("pairwise_all_to_all"), 8)
    wanted = wire(program, fast=True)
    monkeypatch.setattr(wiring, "_FEW", 2)
    for one, other in zip(wire(program, fast=True), wanted, strict=True):
        assert np.array_equal(one, other)


def test_both_ways_to_price_messages_and_rows_find_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The functions that numba compiles, as Python."""
    from commlang.simulate import compiled

    monkeypatch.setattr(compiled, "compiled", lambda function: function)  # pyright: ignore[reportUnknownLambdaType]
    machine = nodes(2, 4)
    for name in LIBRARY:
        program = build(find_pattern(name), 8)
        wiring, rows = wire(program), np.arange(len(program))
        slow, fast = (Bytes(program, fast=f) for f in (False, True))
        assert np.array_equal(slow.sides(rows), fast.sides(rows))
        one, other = (messages_of(program, machine, wiring, sizes) for sizes in (slow, fast))
        for column in ("lot", "pair", "bytes", "src", "dst"):
            assert np.array_equal(getattr(one, column), getattr(other, column)), column
        alone = messages_of(program, machine, wiring, slow, apart=True)
        assert alone.lot.tolist() == list(range(len(wiring.send)))
        assert np.array_equal(alone.bytes, one.bytes[one.lot])
        for column in ("src", "dst"):
            ranks = getattr(one, column)[one.pair[one.lot]]
            assert np.array_equal(getattr(alone, column)[alone.pair], ranks), column


def test_machine_code_is_kept_only_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = cache_folder()
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert cache_folder() is None
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache_folder() is None


def test_narrow_programs_leave_the_levels_for_the_kernel() -> None:
    text = "pattern main(x: float32[4]):\n    for i in range(600):\n        compute(1s)\n"
    found = times(text, 1, contention=False, engine="numpy")
    assert found.makespan == 600
    assert len(found.critical) == 600


def test_numba_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "has_numba", lambda: False)
    assert engines.choose("auto", 10**7) == "numpy"
    assert engines.choose("auto", 10) == "python"
    with pytest.raises(UsageError, match=r"pip install 'commlang\[fast\]'"):
        times("pattern main(x: float32[4]):\n    fill(x, 1)\n", 1, engine="numba")
