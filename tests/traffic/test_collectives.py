"""The bytes of collectives: by hand, and against algorithms that are run message by message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlang.errors import UsageError
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.traffic import ALGORITHMS, SOURCES, Traffic, traffic

if TYPE_CHECKING:
    from collections.abc import Callable

F32 = 4


def traffic_of(body: str, world: int, parameters: str = "", **options: Any) -> Traffic:
    text = f"pattern main({parameters}):\n" + "".join(f"    {s}\n" for s in body.splitlines())
    module = load_module(Source(text, "test.cl"))
    return traffic(build(module.symbols["main"], world), **options)


X8 = "x: float32[8]"
BY_HAND: list[tuple[str, str, dict[str, str], list[list[int]]]] = [
    # 8 floats in 4 chunks of 2: 6 chunks of 8 bytes on each edge of the ring.
    ("all_reduce(x)", X8, {}, [[0, 48, 0, 0], [0, 0, 48, 0], [0, 0, 0, 48], [48, 0, 0, 0]]),
    (
        "all_reduce(x)",
        X8,
        {"all_reduce": "tree"},
        [[0, 32, 32, 0], [32, 0, 0, 32], [32, 0, 0, 0], [0, 32, 0, 0]],
    ),
    (
        "all_reduce(x)",
        X8,
        {"all_reduce": "doubling"},
        [[0, 32, 32, 0], [32, 0, 0, 32], [32, 0, 0, 32], [0, 32, 32, 0]],
    ),
    (
        "all_reduce(x)",
        X8,
        {"all_reduce": "direct"},
        [[0, 32, 32, 32], [32, 0, 32, 32], [32, 32, 0, 32], [32, 32, 32, 0]],
    ),
    ("broadcast(x, src=1)", X8, {}, [[0] * 4, [0, 0, 32, 32], [32, 0, 0, 0], [0] * 4]),
    (
        "broadcast(x, src=1)",
        X8,
        {"broadcast": "chain"},
        [[0] * 4, [0, 0, 32, 0], [0, 0, 0, 32], [32, 0, 0, 0]],
    ),
    (
        "broadcast(x, src=1)",
        X8,
        {"broadcast": "direct"},
        [[0] * 4, [32, 0, 32, 32], *[[0] * 4] * 2],
    ),
    ("reduce(x, dst=1)", X8, {}, [[0, 0, 32, 0], [0] * 4, [0, 32, 0, 0], [0, 32, 0, 0]]),
    (
        "reduce(x, dst=1)",
        X8,
        {"reduce": "chain"},
        [[0, 0, 0, 32], [0] * 4, [0, 32, 0, 0], [0, 0, 32, 0]],
    ),
    ("reduce(x, dst=1)", X8, {"reduce": "direct"}, [[0, 32, 0, 0], [0] * 4, *[[0, 32, 0, 0]] * 2]),
    # A reduce-scatter of 3 chunks of 8 bytes on each edge, then a chunk from each to the root.
    (
        "reduce(x, dst=1)",
        X8,
        {"reduce": "ring"},
        [[0, 32, 0, 0], [0, 0, 24, 0], [0, 8, 0, 24], [24, 8, 0, 0]],
    ),
    (
        "all_gather_into_tensor(x, y)",
        "x: float32[8], y: float32[2]",
        {},
        [[0, 24, 0, 0], [0, 0, 24, 0], [0, 0, 0, 24], [24, 0, 0, 0]],
    ),
    (
        "all_gather_into_tensor(x, y)",
        "x: float32[8], y: float32[2]",
        {"all_gather": "direct"},
        [[0, 8, 8, 8], [8, 0, 8, 8], [8, 8, 0, 8], [8, 8, 8, 0]],
    ),
    # Chunks of 3, 2, 2, 2: the edge to rank i carries all but chunk i.
    (
        "all_gather(x.chunks(world), x.chunks(world)[rank])",
        "x: float32[9]",
        {},
        [[0, 28, 0, 0], [0, 0, 28, 0], [0, 0, 0, 28], [24, 0, 0, 0]],
    ),
    (
        "reduce_scatter_tensor(y, x)",
        "x: float32[8], y: float32[2]",
        {},
        [[0, 24, 0, 0], [0, 0, 24, 0], [0, 0, 0, 24], [24, 0, 0, 0]],
    ),
    # The edge from rank i carries all but its own chunk.
    (
        "temp y: float32[share(9, world, rank)]\nreduce_scatter(y, x.chunks(world))",
        "x: float32[9]",
        {},
        [[0, 24, 0, 0], [0, 0, 28, 0], [0, 0, 0, 28], [28, 0, 0, 0]],
    ),
    (
        "temp y: float32[share(9, world, rank)]\nreduce_scatter(y, x.chunks(world))",
        "x: float32[9]",
        {"reduce_scatter": "direct"},
        [[0, 8, 8, 8], [12, 0, 8, 8], [12, 8, 0, 8], [12, 8, 8, 0]],
    ),
    (
        "reduce_scatter_tensor(y, x)",
        "x: float32[8], y: float32[2]",
        {"reduce_scatter_tensor": "all_reduce"},
        [[0, 48, 0, 0], [0, 0, 48, 0], [0, 0, 0, 48], [48, 0, 0, 0]],
    ),
    (
        "if rank == 2:\n    scatter(y, x.chunks(4), src=2)\nelse:\n    scatter(y, src=2)",
        "x: float32[8], y: float32[2]",
        {},
        [[0] * 4, [0] * 4, [8, 8, 0, 8], [0] * 4],
    ),
    (
        "if rank == 2:\n    gather(y, x.chunks(4), dst=2)\nelse:\n    gather(y, dst=2)",
        "x: float32[8], y: float32[2]",
        {},
        [[0, 0, 8, 0], [0, 0, 8, 0], [0] * 4, [0, 0, 8, 0]],
    ),
    (
        "all_to_all_single(y, x)",
        "x: float32[8], y: float32[8]",
        {},
        [[0, 8, 8, 8], [8, 0, 8, 8], [8, 8, 0, 8], [8, 8, 8, 0]],
    ),
    ("barrier()", "", {}, [[0] * 4] * 4),
]


@pytest.mark.parametrize(("body", "parameters", "algorithms", "expected"), BY_HAND)
def test_the_bytes_of_a_collective_by_hand(
    body: str, parameters: str, algorithms: dict[str, str], expected: list[list[int]]
) -> None:
    found = traffic_of(body, 4, parameters, algorithms=algorithms)
    assert found.matrix().tolist() == expected
    assert found.sent.tolist() == [sum(row) for row in expected]
    assert found.received.tolist() == [sum(row) for row in zip(*expected, strict=True)]


def test_an_all_to_all_of_uneven_parts_sends_what_its_splits_say() -> None:
    body = """\
all_to_all_single(
    y,
    x,
    output_split_sizes=[counts[r, rank] for r in ranks],
    input_split_sizes=[counts[rank, r] for r in ranks],
)"""
    counts = "[[5, 0, 2], [1, 5, 1], [1, 2, 4]]"
    parameters = f"x: float16[7], y: float16[7], counts: int[3, 3] = {counts}"
    found = traffic_of(body, 3, parameters)
    assert found.matrix().tolist() == [[0, 0, 4], [2, 0, 2], [2, 4, 0]]
    assert found.count == 5, "nothing is sent where a part has no elements"


def test_messages_are_counted_and_a_barrier_has_rounds() -> None:
    assert traffic_of("barrier()", 5).count == 5 * 3  # distances 1, 2, 4
    assert traffic_of("all_reduce(x)", 5, X8).count == 5 * 8  # 2 (p - 1) each
    assert traffic_of("broadcast(x, src=0)", 5, X8).count == 4
    found = traffic_of("for s in range(6):\n    all_reduce(x[:2])\n    all_reduce(x)", 2, X8)
    assert found.messages.tolist() == [12, 12, 12, 12], "one entry a pair and statement"
    assert found.bytes.tolist() == [48, 192, 48, 192]
    assert len(found.pairs()) == 2
    assert found.pairs().bytes.tolist() == [240, 240]


def test_groups_send_among_their_members_in_their_order() -> None:
    body = "group odd = [5, 1, 3]\nif rank % 2 == 1:\n    all_reduce(x, group=odd)"
    found = traffic_of(body, 6, "x: float32[6]")
    assert found.src.tolist() == [1, 3, 5]
    assert found.dst.tolist() == [3, 5, 1]
    assert found.bytes.tolist() == [32, 32, 32]
    assert traffic_of("group me = [rank]\nall_reduce(x, group=me)", 3, X8).total == 0


Matrix = list[list[int]]


def run_ring(size: int, chunks: list[int], gather: bool, scatter: bool, flow: Matrix) -> None:
    """A ring with the chunks that each message carries; every member must end with its own."""
    if scatter:
        held = [{c: {r} for c in range(size)} for r in range(size)]
        for step in range(size - 1):
            sent = [(r, (r - 1 - step) % size) for r in range(size)]
            contents = [set(held[r][c]) for r, c in sent]
            for (r, c), content in zip(sent, contents, strict=True):
                flow[r][(r + 1) % size] += chunks[c]
                held[(r + 1) % size][c] |= content
        assert all(held[r][r] == set(range(size)) for r in range(size))
    if gather:
        have = [{r} for r in range(size)]
        for step in range(size - 1):
            for r in range(size):
                c = (r - step) % size
                assert c in have[r]
                flow[r][(r + 1) % size] += chunks[c]
                have[(r + 1) % size].add(c)
        assert all(len(h) == size for h in have)


def shares(n: int, size: int) -> list[int]:
    return [n // size + (i < n % size) for i in range(size)]


@settings(max_examples=20)
@given(st.integers(2, 9), st.integers(0, 40))
def test_rings_send_what_they_send_message_by_message(size: int, n: int) -> None:
    chunks = [F32 * c for c in shares(n, size)]
    for body, gather, scatter in (
        ("all_reduce(x)", True, True),
        ("all_gather(x.chunks(world), x.chunks(world)[rank])", True, False),
        ("temp y: float32[share(n, world, rank)]\nreduce_scatter(y, x.chunks(world))", False, True),
    ):
        flow = [[0] * size for _ in range(size)]
        run_ring(size, chunks, gather, scatter, flow)
        assert traffic_of(body, size, f"x: float32[n], n = {n}").matrix().tolist() == flow


@settings(max_examples=20)
@given(st.integers(2, 40), st.data())
def test_every_broadcast_and_reduce_reaches_everybody_once(size: int, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, size - 1))
    for algorithm in ALGORITHMS_OF("broadcast"):
        flow = traffic_of(
            f"broadcast(x, src={root})", size, X8, algorithms={"broadcast": algorithm}
        )
        assert flow.received.tolist() == [0 if r == root else 32 for r in range(size)]
        assert reached(flow, root) == set(range(size))
    for algorithm in ("tree", "chain", "direct"):
        flow = traffic_of(f"reduce(x, dst={root})", size, X8, algorithms={"reduce": algorithm})
        assert flow.sent.tolist() == [0 if r == root else 32 for r in range(size)]


def ALGORITHMS_OF(name: str) -> list[str]:  # noqa: N802 - reads like the table
    return next(list(known) for kind, known in ALGORITHMS.items() if kind.name.lower() == name)


def reached(flow: Traffic, root: int) -> set[int]:
    found, edges = {root}, list(zip(flow.src.tolist(), flow.dst.tolist(), strict=True))
    for _ in edges:
        found |= {b for a, b in edges if a in found}
    return found


@settings(max_examples=20)
@given(st.integers(2, 33))
def test_doubling_combines_all_members_on_all_members(size: int) -> None:
    """By bits: what each member knows grows by what it is sent, round by round."""
    flow = traffic_of("all_reduce(x)", size, X8, algorithms={"all_reduce": "doubling"})
    power = 1 << (size.bit_length() - 1)
    extra = size - power
    rounds = power.bit_length() - 1
    assert flow.count == power * rounds + 2 * extra
    assert flow.sent.tolist() == [
        32 * (1 if r < 2 * extra and r % 2 == 0 else rounds + (r < 2 * extra)) for r in range(size)
    ]
    assert flow.sent.tolist() == flow.received.tolist()
    assert np.array_equal(flow.matrix(), flow.matrix().T)


def test_backends_take_their_own_algorithms() -> None:
    both = "x: float32[8], y: float32[2]"
    scatter = "reduce_scatter_tensor(y, x)"
    assert traffic_of(scatter, 4, both).total == 96
    assert traffic_of(scatter, 4, both, backend="gloo").total == 192
    assert traffic_of("reduce(x, dst=0)", 4, X8, backend="gloo").total == 96 + 24
    chain = traffic_of("broadcast(x, src=0)", 4, X8, backend="nccl")
    assert list(zip(chain.src.tolist(), chain.dst.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]
    tree = traffic_of(
        "broadcast(x, src=0)", 4, X8, backend="nccl", algorithms={"broadcast": "tree"}
    )
    assert tree.dst.tolist() == [1, 2, 3]
    assert {name for known in ALGORITHMS.values() for name in known} == set(SOURCES)


def refused(function: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as error:
        function()
    return str(error.value)


def test_what_is_not_known_is_refused() -> None:
    def choose(**algorithms: str) -> Callable[[], object]:
        return lambda: traffic_of("all_reduce(x)", 2, X8, algorithms=algorithms)

    assert refused(choose(all_redcue="ring")) == (
        "`all_redcue` is no collective that has an algorithm; did you mean `all_reduce`?"
    )
    assert refused(choose(send="ring")).startswith("`send` is no collective that has an algorithm")
    assert refused(choose(all_reduce="spiral")) == (
        "all_reduce: `spiral` is no algorithm that is known for it; "
        "there is ring, tree, doubling, direct"
    )
    both = "x: float32[n], y: float32[n], n = 8Ki"
    assert refused(lambda: traffic_of("all_to_all_single(y, x)", 8192, both)) == (
        "`all_to_all_single(y, x)` at test.cl:2:5 makes 67,108,864 pairs of ranks; at most "
        "33,554,432 are counted. Take fewer ranks, which show the same picture"
    )
