"""Operations in pieces: which are split, what keeps them whole, and what comes of it."""

from __future__ import annotations

import numpy as np
import pytest

import commlang
from commlang.operations import Kind
from commlang.plan import Plan
from commlang.schedule import Act
from commlang.schedule.chunks import PIECE, PIECES, chunks

CHAIN = """\
if rank > 0:
    recv(x, src=rank - 1)
if rank < world - 1:
    send(x, dst=rank + 1)
"""
LEVELS = """\
mesh node = 2, local = 2
reduce(x, dst=local[0], group=local)
if local.index == 0:
    all_reduce(x, group=node)
broadcast(x, src=local[0], group=local)
"""
LARGE = 2 * PIECE // 4 + 1
"""float32 elements that make two pieces, one of them larger by one element."""


def plan(body: str, world: int = 4, n: int = LARGE) -> Plan:
    head = f"pattern f(x: float32[n], y: float32[n], z: float32[2, n], n = {n}):\n"
    text = head + "".join(f"    {line}\n" for line in body.splitlines())
    return commlang.loads(text, "f").plan(world=world)


def told(found: Plan, rank: int) -> list[str]:
    """Acts, kinds, and elements as `[from:to]`, of what a rank's host does."""
    program = found.program(rank)

    def words(row: int) -> str:
        at = int(program.first[row])
        low = int(program.operands.offset[at])
        name = Kind(int(program.kind[row])).name.lower()
        return f"{name}[{low}:{low + int(program.operands.length[at])}]"

    return [" ".join([a.act.value, *map(words, a.rows)]) for a in found.actions(rank)]


def test_a_chain_passes_pieces_on_while_the_next_come_in() -> None:
    found = plan(CHAIN)
    assert found.passes == ("chunk", "overlap")
    half, end = LARGE // 2, LARGE
    assert told(found, 1) == [
        f"start recv[0:{half}]",
        f"start recv[{half}:{end}]",
        f"join recv[0:{half}]",
        f"start send[0:{half}]",
        f"join recv[{half}:{end}]",
        f"start send[{half}:{end}]",
        f"join send[0:{half}] send[{half}:{end}]",
    ]


def test_a_rank_alone_gets_the_same_as_among_all() -> None:
    found = plan(LEVELS, n=5 * PIECE // 4)
    whole = found.program()
    assert {chunk.pieces for chunk in found.chunks} == {5}
    for rank in range(4):
        rows, alone = whole.rows_of(rank), found.program(rank)
        for column in ("kind", "peer", "group", "tag"):
            assert getattr(alone, column).tolist() == getattr(whole, column)[rows].tolist()
        mine, all_ = alone.operands, whole.operands
        here, there = alone.first >= 0, whole.first[rows] >= 0
        assert (
            mine.offset[alone.first[here]].tolist()
            == all_.offset[whole.first[rows][there]].tolist()
        )


def test_local_sums_on_the_way_are_split_too() -> None:
    body = (
        "if rank > 0:\n    recv(y, src=rank - 1)\n    y -> x, op=sum\n"
        "if rank < world - 1:\n    send(x, dst=rank + 1)"
    )
    found = plan(body, 3)
    half, end = LARGE // 2, LARGE
    assert told(found, 1)[2:6] == [
        f"join recv[0:{half}]",
        f"run accumulate[0:{half}]",
        f"start send[0:{half}]",
        f"join recv[{half}:{end}]",
    ]


@pytest.mark.parametrize(
    ("body", "n"),
    [
        (CHAIN, LARGE - 2),  # not two pieces
        ("all_reduce(x)\nall_reduce(x)", LARGE),  # on the same links, so nothing overlaps
        ("all_reduce(x)\nall_reduce(y)", LARGE),  # nothing passed on
        ("mesh a = 2, b = 2\nall_reduce(x, group=a)\ncompute(1ms, writes=x)\nbarrier()", LARGE),
    ],
)
def test_what_stays_whole(body: str, n: int) -> None:
    assert plan(body, n=n).chunks == ()


def test_one_that_cannot_be_split_keeps_all_that_it_meets_whole() -> None:
    """The last rank of the chain receives into every other row, which has gaps."""
    body = (
        "if rank > 0 and rank < world - 1:\n    recv(x, src=rank - 1)\n"
        "if rank < world - 1:\n    send(x, dst=rank + 1)\n"
        "if rank == world - 1:\n    parallel:\n        recv(x, src=rank - 1)\n"
    )
    assert plan(body, 3).chunks == ()


def test_there_are_so_many_pieces_and_no_more() -> None:
    found = plan(CHAIN, 2 + 1, n=100 * PIECE)
    assert {chunk.pieces for chunk in found.chunks} == {PIECES}


def test_why_nothing_is_split() -> None:
    program = commlang.loads("pattern f(x: float32[n], n = 4):\n    all_reduce(x)\n", "f").program(
        2
    )
    assert chunks(program) == "no operation is of 4 MiB or more"


def test_a_plan_keeps_its_chunks() -> None:
    found = plan(CHAIN)
    again = Plan.from_json(found.to_json())
    assert again.chunks == found.chunks
    assert told(again, 1) == told(found, 1)
    joins = [a for a in found.actions(0) if a.act is Act.JOIN]
    assert np.sum([len(a.rows) for a in joins]) == 2
