"""Figures are found again in times that were made from them, and a machine is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commlang.calibrate import Figures, Samples, fit, machine_of, text_of
from commlang.calibrate.collectives import Predicted, group_sizes
from commlang.calibrate.model import (
    ADD,
    ALL_REDUCE,
    ALONE,
    BOTH,
    CARS,
    COPY,
    ISSUE,
    PAIRS,
    TRAIN,
    TRIPS,
)
from commlang.calibrate.told import doubts
from commlang.errors import UsageError
from commlang.program import build
from commlang.simulate import simulate
from commlang.source import Source
from commlang.topology.load import read_machine
from commlang.verify import find_pattern

if TYPE_CHECKING:
    from commlang.topology import Machine

SIZES = np.array([1 << 10, 16 << 10, 256 << 10, 4 << 20], dtype=np.float64)
TRUE = Figures(100e-6, 20e-6, 50e-6, 1e9, 2e9, 0.0, 10e9)


def samples(world: int = 4, true: Figures = TRUE, backend: str = "gloo") -> Samples:
    """What ranks with these figures would have measured."""
    pairs = world // 2
    seconds: dict[str, Any] = {
        ALONE: 2 * TRIPS * true.seconds(1, 1, SIZES),
        PAIRS: 2 * TRIPS * true.seconds(pairs, 1, SIZES),
        BOTH: true.seconds(2 * pairs, 1, SIZES),
        TRAIN: true.seconds(2 * pairs * CARS, 1, SIZES),
        ALL_REDUCE: 1.5 * true.seconds(2 * (world - 1) * world, 2 * (world - 1), SIZES / world),
        COPY: 2 * SIZES / 10e9,
        ADD: 3 * SIZES / 10e9,
        ISSUE: np.full(len(SIZES), true.overhead),
    }
    return Samples(world, 2, backend, SIZES, seconds)


def test_figures_are_found_again() -> None:
    found = fit(samples())
    assert found.alpha == pytest.approx(100e-6, rel=1e-3)
    assert found.gap == pytest.approx(50e-6, rel=1e-3)
    assert found.bandwidth == pytest.approx(1e9, rel=1e-3)
    assert found.channel == pytest.approx(2e9, rel=1e-3)
    assert found.latency == pytest.approx(60e-6, rel=1e-2)
    assert found.memory == pytest.approx(10e9)
    assert found.error < 1e-3


def test_sizes_that_tell_no_bandwidth_are_named() -> None:
    assert doubts(samples(), TRUE) == []
    fast = Figures(100e-6, 20e-6, 50e-6, 1e14, 2e9, 0.0, 10e9)
    assert doubts(samples(), fast) == [
        "warning: no bandwidth of one message could be told: 4,194,304 bytes take as long as few; "
        "give larger --sizes, or more --iters"
    ]


def test_one_time_in_ten_that_is_far_off_changes_little() -> None:
    told = samples()
    told.seconds[PAIRS][1] *= 20
    found = fit(told)
    assert found.alpha == pytest.approx(100e-6, rel=0.1)
    assert found.channel == pytest.approx(2e9, rel=0.1)


def test_an_overhead_is_at_most_half_of_a_message() -> None:
    slow = samples()
    slow.seconds[ISSUE][:] = 1.0
    assert fit(slow).latency == pytest.approx(0, abs=1e-9)


def test_medians_are_taken_of_rounds() -> None:
    measured = {(PAIRS, 8): [3.0, 1.0, 2.0], (PAIRS, 16): [5.0, 5.0, 50.0]}
    told = Samples.of(2, 1, "mpi", measured)
    assert (told.sizes.tolist(), told.seconds[PAIRS].tolist()) == ([8, 16], [2, 5])
    with pytest.raises(UsageError, match="one size gives no bandwidth"):
        Samples.of(2, 1, "mpi", {(PAIRS, 8): [1.0]})


def test_collectives_follow_from_ping_pong_and_all_reduce() -> None:
    told = samples()
    predicted = Predicted(told, fit(told))
    assert predicted.seconds(ALL_REDUCE, 4).tolist() == told.seconds[ALL_REDUCE].tolist()
    ring = 1.5 * TRUE.seconds(2 * 3 * 4, 2 * 3, SIZES / 4) + SIZES / 5e9
    assert predicted.seconds("reduce_scatter", 4) == pytest.approx(ring, rel=1e-2)
    tree = TRUE.seconds(3, 2, SIZES)
    assert predicted.seconds("broadcast", 4) == pytest.approx(tree, rel=1e-2)
    two_at_once = TRUE.seconds(2 * 1, 1, SIZES)
    assert predicted.seconds("broadcast", 2) == pytest.approx(two_at_once, rel=1e-2)
    assert predicted.seconds("barrier", 4)[0] == pytest.approx(500e-6, rel=1e-2)


def test_other_backends_reduce_and_scatter_without_a_copy() -> None:
    told = samples(backend="mpi")
    ring = 1.5 * TRUE.seconds(3 * 4, 3, SIZES / 4)
    assert Predicted(told, fit(told)).seconds("reduce_scatter", 4) == pytest.approx(ring, rel=1e-2)


@pytest.mark.parametrize(("world", "sizes"), [(2, [2]), (3, [3]), (4, [4, 2]), (8, [8, 4, 2])])
def test_groups_are_the_world_and_its_halves(world: int, sizes: list[int]) -> None:
    assert group_sizes(world) == sizes


@pytest.fixture(scope="module")
def machine() -> Machine:
    told = samples()
    text = text_of(machine_of("here", told, fit(told)), {"host": "a\nb", "date": "today"})
    assert text.startswith("# host: a b\n# date: today\n\nname: here\n")
    return read_machine(Source(text, "here.yaml"))


def test_the_file_reads_as_the_machine(machine: Machine) -> None:
    (link,), (level,) = machine.links, machine.levels
    assert (level.kind, level.count, link.name, machine.size) == ("bus", 4, "gloo", 4)
    assert link.bandwidth == pytest.approx(1e9, rel=1e-2)
    assert level.channel == pytest.approx(2e9, rel=1e-2)
    assert link.gap == pytest.approx(50e-6, rel=1e-2)
    assert machine.compute.memory_bandwidth == pytest.approx(10e9, rel=1e-2)
    found = machine.collective("all_reduce", 4)
    assert found is not None
    assert found.source == "measured"
    expected = 1.5 * TRUE.seconds(24, 6, np.array([4 << 18]))
    assert found.seconds(4 << 20) == pytest.approx(expected[0], rel=1e-2)
    assert {one.world for one in machine.collectives} == {2, 4}


def test_a_simulation_on_it_shares_the_channel(machine: Machine) -> None:
    size = 4 << 20
    alone = build(find_pattern("send_recv"), 2, {"n": size // 4})
    assert simulate(alone, machine).makespan == pytest.approx(TRUE.seconds(1, 1, size), rel=2e-2)
    shift = build(find_pattern("batch"), 4, {"n": size // 4})
    all_at_once = TRUE.seconds(4, 1, size)
    assert simulate(shift, machine).makespan == pytest.approx(all_at_once, rel=5e-2)
