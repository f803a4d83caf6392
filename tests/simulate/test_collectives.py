"""Collectives by their formulas, computed by hand on machines of whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commlang.errors import UsageError
from commlang.schedule import Bucket
from commlang.simulate.algorithms import ALGORITHMS
from commlang.topology import Collective
from tests.simulate.cases import nodes, switch, times

if TYPE_CHECKING:
    from commlang.simulate import Simulation

OVERHEAD, LATENCY, G, SIZE = 5, 100, 2, 1024
MACHINE = switch(8, o=OVERHEAD, latency=LATENCY, g=3, per_byte=G)

CALLS = {
    "all_reduce": "all_reduce(x)",
    "reduce": "reduce(x, dst=2)",
    "broadcast": "broadcast(x, src=2)",
    "all_gather": "all_gather_single(x, x.chunks(8)[rank])",
    "reduce_scatter": "reduce_scatter_single(y, x)",
    "all_to_all": "all_to_all_single(z, x)",
    "scatter": """
    if rank == 2:
        scatter(y, x.chunks(8), src=2)
    else:
        scatter(y, src=2)""",
    "gather": """
    if rank == 2:
        gather(y, x.chunks(8), dst=2)
    else:
        gather(y, dst=2)""",
    "barrier": "barrier()",
}


def call(operation: str, algorithm: str | None = None, *, contention: bool = False) -> Simulation:
    text = f"""\
pattern main(x: uint8[1024], y: uint8[128], z: uint8[1024]):
    {CALLS[operation]}
"""
    chosen = {operation: algorithm} if algorithm else {}
    return times(text, 8, MACHINE, algorithms=chosen, contention=contention)


@pytest.mark.parametrize(
    ("operation", "algorithm", "rounds", "data"),
    [
        ("all_reduce", "ring", 14, 14 / 8),
        ("all_reduce", "tree", 6, 2 / 0.92),
        ("all_reduce", "doubling", 3, 3),
        ("reduce", "tree", 3, 3),
        ("reduce", "reduce_gather", 10, 14 / 8),
        ("broadcast", "tree", 3, 3),
        ("broadcast", "scatter_gather", 10, 14 / 8),
        ("all_gather", "ring", 7, 7 / 8),
        ("all_gather", "doubling", 3, 7 / 8),
        ("reduce_scatter", "ring", 7, 7 / 8),
        ("reduce_scatter", "doubling", 3, 7 / 8),
        ("all_to_all", "bruck", 3, 3 / 2),
        ("scatter", "tree", 3, 7 / 8),
        ("gather", "tree", 3, 7 / 8),
        ("barrier", "dissemination", 3, 0),
    ],
)
def test_a_call_takes_its_rounds_and_its_data(
    operation: str, algorithm: str, rounds: int, data: float
) -> None:
    found = call(operation, algorithm)
    size = 0 if operation == "barrier" else SIZE
    assert found.makespan == pytest.approx(2 * OVERHEAD + rounds * LATENCY + data * size * G)


@pytest.mark.parametrize("operation", ["all_to_all", "scatter", "gather"])
def test_direct_messages_leave_one_after_the_other(operation: str) -> None:
    found = call(operation, "direct")
    assert found.makespan == pytest.approx(2 * OVERHEAD + LATENCY + 7 * (3 + SIZE / 8 * G))


@pytest.mark.parametrize("operation", ["reduce", "broadcast"])
def test_a_chain_is_cut_as_is_best(operation: str) -> None:
    found = call(operation, "chain")
    data = SIZE * G
    assert found.makespan == pytest.approx(
        2 * OVERHEAD + 7 * LATENCY + data + 2 * (6 * LATENCY * data) ** 0.5
    )


@pytest.mark.parametrize("operation", CALLS)
def test_the_fastest_is_taken_unless_one_is_asked_for(operation: str) -> None:
    kind = next(k for k in ALGORITHMS if k.name.lower() == operation)
    each = [call(operation, name).makespan for name in ALGORITHMS[kind]]
    assert call(operation).makespan == min(each)


@pytest.mark.parametrize(
    ("operation", "part"), [("all_reduce", 14), ("all_gather", 7), ("all_to_all", 7)]
)
def test_what_a_call_sends_is_on_the_links(operation: str, part: int) -> None:
    """Around a switch each message passes two channels."""
    for contention in (False, True):
        found = call(operation, contention=contention)
        assert found.link_bytes.sum() == pytest.approx(2 * part * SIZE)


def test_trees_send_all_data_up_and_down() -> None:
    found = call("all_reduce", "tree")
    assert found.link_bytes.sum() == pytest.approx(2 * 14 * SIZE)
    sent = found.link_bytes[:8]
    assert sent.max() <= 2 * SIZE, "two trees share the work"


def test_across_nodes_the_hierarchical_one_is_best() -> None:
    text = "pattern main(x: uint8[4096]):\n    all_reduce(x)\n"
    asked = {"all_reduce": "hierarchical"}
    found = times(text, 8, nodes(2, 4, ports=4), contention=False)
    assert found.makespan == times(text, 8, nodes(2, 4, ports=4), algorithms=asked).makespan
    inside = 2 * 3 * 10 + 2 * 3 / 4 * 4096
    between = 2 * 100 + 4096 / 4 * 10  # a ring of two on a quarter of the data
    doubling = 100 + 4096 / 4 * 10
    assert between > doubling
    assert found.makespan == pytest.approx(2 * 1 + inside + doubling)


def test_rails_that_share_one_port_take_as_long_as_all_their_data() -> None:
    text = "pattern main(x: uint8[4096]):\n    all_reduce(x)\n"
    asked = {"all_reduce": "hierarchical"}
    found = times(text, 8, nodes(2, 4, ports=1), algorithms=asked)
    assert found.makespan >= 4096 * 10
    assert found.makespan > times(text, 8, nodes(2, 4, ports=4), algorithms=asked).makespan


def test_calls_of_groups_that_share_a_port_queue_for_it() -> None:
    text = """\
pattern main(x: uint8[4096]):
    for i in range(4):
        group across = [i, i + 4]
        if rank == i or rank == i + 4:
            all_reduce(x, group=across)
"""
    alone = times(text, 8, nodes(2, 4, ports=1), contention=False)
    shared = times(text, 8, nodes(2, 4, ports=1), contention=True)
    apart = times(text, 8, nodes(2, 4, ports=4), contention=True)
    assert apart.makespan == alone.makespan
    assert shared.makespan >= 4 * 4096 * 10 > alone.makespan


def test_calls_of_one_group_follow_one_another() -> None:
    text = """\
pattern main(x: uint8[1024], y: uint8[1024]):
    a = async all_reduce(x)
    b = async all_reduce(y)
    wait(a)
    wait(b)
"""
    for contention in (False, True):
        found = times(text, 8, MACHINE, contention=contention)
        ends = np.unique(found.timing.end[found.program.is_collective])
        assert ends.tolist() == pytest.approx([ends[0], 2 * ends[0]])


def test_calls_of_a_bucket_are_one_call_of_all_their_bytes() -> None:
    text = """\
pattern main(x: uint8[1024], y: uint8[1024]):
    a = async all_reduce(x)
    b = async all_reduce(y)
    wait(a)
    wait(b)
"""
    one = "pattern main(x: uint8[2048]):\n    all_reduce(x)\n"
    bucket = Bucket(group=0, turn=0, count=2)
    for contention in (False, True):
        found = times(text, 8, MACHINE, contention=contention, buckets=[bucket])
        whole = times(one, 8, MACHINE, contention=contention)
        assert found.makespan == whole.makespan
        assert found.link_bytes.sum() == pytest.approx(whole.link_bytes.sum())


def test_a_group_of_one_takes_no_time() -> None:
    text = "pattern main(x: uint8[1024]):\n    all_reduce(x)\n"
    assert times(text, 1, MACHINE).makespan == 0


def test_measured_times_go_before_formulas() -> None:
    points = ((1024, 77.0), (2048, 100.0))
    measured = (Collective(name="all_reduce", world=8, points=points),)
    machine = MACHINE.model_copy(update={"collectives": measured})
    text = "pattern main(x: uint8[n], n = 1024):\n    all_reduce(x)\n"
    assert times(text, 8, machine).makespan == 77
    assert times(text, 4, machine).makespan != 77, "those were of 8 ranks"
    asked = times(text, 8, machine, algorithms={"all_reduce": "ring"})
    assert asked.makespan == call("all_reduce", "ring").makespan


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"allreduce": "ring"}, "algorithm of `allreduce`: this is no collective; did you mean"),
        ({"send": "ring"}, "algorithm of `send`: this is no collective"),
        ({"all_reduce": "rang"}, "algorithm all_reduce=rang: no such algorithm; did you mean"),
        ({"all_reduce": "hierarchical"}, "the 8 ranks of a group are not spread evenly"),
    ],
)
def test_algorithms_that_make_no_sense(asked: dict[str, str], told: str) -> None:
    text = "pattern main(x: uint8[1024]):\n    all_reduce(x)\n"
    with pytest.raises(UsageError, match=told):
        times(text, 8, MACHINE, algorithms=asked)
