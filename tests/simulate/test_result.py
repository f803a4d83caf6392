"""Where the time went: critical path, bubble, memory, and the sentence on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commlang.errors import UsageError
from commlang.program import build
from commlang.simulate import Straggler, simulate
from commlang.verify import find_pattern
from tests.simulate.cases import nodes, switch, times

if TYPE_CHECKING:
    from commlang.simulate import Simulation
    from commlang.topology import Machine

CHAIN = """\
pattern main(x: float32[4]):
    if rank > 0:
        recv(x, src=rank - 1)
    compute(100000s, label="stage")
    if rank < world - 1:
        send(x, dst=rank + 1)
"""


def lines(found: Simulation) -> list[int]:
    """The lines of the critical path."""
    where = [found.program.where(row) for row in found.critical.tolist()]
    return [int(place.split(":")[1]) for place in where]


def test_the_critical_path_of_a_chain_goes_through_every_rank() -> None:
    found = times(CHAIN, 3)
    message = 1500 + 2500 + 15 * 6 + 1500
    assert found.makespan == 3 * 100000 + 2 * message
    assert lines(found) == [4, 3, 4, 3, 4]
    assert found.path.seconds.tolist() == [100000, message, 100000, message, 100000]
    assert found.program.rank[found.critical].tolist() == [0, 1, 1, 2, 2]
    assert found.program.rank[found.path.origin].tolist() == [0, 0, 1, 1, 2]
    assert found.bottleneck == (
        "Local work: it is 96 % of the critical path, most of it "
        '`compute(100000s, label="stage")` (case.cl:4:5).'
    )


def test_the_critical_path_goes_to_the_straggler() -> None:
    text = """\
pattern main(x: float32[4]):
    compute(100s)
    all_reduce(x)
"""
    found = times(text, 4, switch(4), stragglers=[Straggler(2, 1000)])
    assert found.program.rank[found.path.origin].tolist()[-1] == 2
    assert found.path.seconds[0] == 100 * 1000
    assert found.ranks.late.tolist() == [99900, 99900, 0, 99900]


@pytest.mark.parametrize(
    ("machine", "start"),
    [
        (switch(4, per_byte=0.001), "Latency: the fixed costs of messages and calls are 100 %"),
        (switch(4, per_byte=1e6), "Bandwidth of wire: data on the way are 100 %"),
    ],
)
def test_the_bottleneck_follows_the_machine(machine: Machine, start: str) -> None:
    text = "pattern main(x: float32[4]):\n    all_reduce(x)\n"
    assert times(text, 4, machine).bottleneck.startswith(start)


def test_the_bubble_of_1f1b_is_that_of_the_textbook() -> None:
    """(p - 1) / (m + p - 1) for p stages and m micro-batches, where messages cost nothing."""
    program = build(find_pattern("one_f_one_b"), 4)
    machine = switch(4, o=0, latency=0, g=0, per_byte=1e-12)
    machine = machine.model_copy(update={"compute": machine.compute.model_copy(
        update={"memory_bandwidth": None})})  # fmt: skip
    found = simulate(program, machine)
    assert found.bubble == pytest.approx(3 / (8 + 3), abs=1e-6)
    assert times("pattern main(x: float32[4]):\n    fill(x, 1)\n", 2).bubble is None


@pytest.mark.parametrize("inner", ["", "        sequence:\n" + "            compute(0s)\n" * 2])
def test_what_keeps_the_processor_is_on_the_path(inner: str) -> None:
    """Each of its own time: not all of it on the last, nor as queueing for channels."""
    works = "        compute(5s)\n        compute(1s)\n"
    found = times(f"pattern main(x: float32[4]):\n    parallel:\n{works}{inner}", 1)
    assert (lines(found), found.path.seconds.tolist()) == ([3, 4], [5, 1])
    sends = "pattern main(x: float32[4]):\n    parallel:\n        for r in range(1, world):\n"
    sends += "            if rank == 0:\n                send(x, dst=r)\n"
    sends += "            if rank == r:\n                recv(x, src=0)\n"
    machine = switch(9, o=10, latency=1, g=0, per_byte=1e-9)
    found = times(sends, 9, machine)
    assert found.path.seconds.tolist() == [10.0] * 7 + [pytest.approx(21)]
    assert found.bottleneck.startswith("Latency: the fixed costs of messages and calls are 100 %")


def test_branches_that_compute_side_by_side_make_no_negative_bubble() -> None:
    branch = "        sequence:\n            compute(1s)\n            compute(1s)\n"
    found = times(f"pattern main(x: float32[4]):\n    parallel:\n{branch}{branch}", 2)
    assert found.bubble == 0
    assert found.ranks.compute.tolist() == [found.makespan] * 2


def test_memory_counts_parameters_and_the_temps_that_a_rank_touches() -> None:
    text = """\
pattern main(x: float32[n], n = 100):
    for i in range(3):
        temp once: float32[50]
        fill(once, 0)
    if rank == 1:
        temp mine: float64[10]
        fill(mine, 0)
"""
    assert times(text, 2).peak_memory.tolist() == [600, 680]


def test_an_operation_that_nobody_waits_for_counts() -> None:
    text = """\
pattern main(x: float32[4]):
    if rank == 0:
        send(x, dst=1)
    if rank == 1:
        recv(x, src=0)
    fill(x, 1)
"""
    found = times(text, 2)
    assert found.makespan == found.timing.end.max()
    assert found.path.seconds.sum() == found.makespan


def test_an_empty_program_takes_no_time() -> None:
    found = times("pattern main(x: float32[4]):\n    if rank > 9:\n        fill(x, 1)\n", 2)
    assert (found.makespan, found.critical.tolist()) == (0, [])
    assert found.bottleneck == "Nothing here takes any time."
    assert found.ranks.busy.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"costs": {"stge": 1.0}}, "`main` has no such extern or label of compute; it has compute"),
        ({"costs": {"stage": float("nan")}}, "nan is no duration of 0 or more"),
        ({"costs": {"stage": -1.0}}, "-1.0 is no duration"),
        ({"stragglers": [Straggler(3, 2)]}, "straggler 3: there are ranks 0 to 2"),
        ({"stragglers": [Straggler(0, 0)]}, "a factor is more than 0"),
        ({"stragglers": [Straggler(0, float("nan"))]}, "a factor is more than 0"),
        ({"jitter": 2.0}, "give a part from 0 to 1"),
        ({"jitter": float("nan")}, "give a part from 0 to 1"),
        ({"eager": -1}, "eager is a number of bytes"),
        ({"eager": float("nan")}, "eager is a number of bytes"),
        ({"engine": "fast"}, "`fast` is no engine; there are auto, numba, numpy, python"),
    ],
)
def test_arguments_that_make_no_sense(options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        times(CHAIN, 3, **options)


def test_a_machine_that_is_too_small_or_cannot_multiply() -> None:
    with pytest.raises(UsageError, match="plain has 2 devices, fewer than 3 ranks"):
        times(CHAIN, 3, switch(2))
    text = "pattern main(x: float32[4]):\n    compute(matmul=[1, 2, 3])\n"
    with pytest.raises(
        UsageError, match=r"case.cl:2:5: nodes does not say .* `--cost compute=3ms`"
    ):
        times(text, 2, nodes(1, 2))
