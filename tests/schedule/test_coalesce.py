"""Small collectives that become one: which, how many, and what keeps them apart."""

from __future__ import annotations

import pytest

import commlang
from commlang.plan import Plan
from commlang.schedule import Act
from commlang.schedule.coalesce import FULL, SMALL


def plan(body: str, world: int = 2, n: int = 64) -> Plan:
    head = f"pattern f(x: float32[n], y: float32[n], z: int32[n], w: float32[n], n = {n}):\n"
    text = head + "".join(f"    {line}\n" for line in body.splitlines())
    return commlang.loads(text, "f").plan(world=world, schedule="overlap")


def buckets(found: Plan) -> list[tuple[int, int, int]]:
    return [(b.group, b.turn, b.count) for b in found.buckets]


def starts(found: Plan, rank: int = 0) -> list[int]:
    """How many rows each start of a rank has."""
    return [len(a.rows) for a in found.actions(rank) if a.act is Act.START]


def test_neighbours_are_one() -> None:
    found = plan("barrier()\nall_reduce(x)\nall_reduce(y)\nall_reduce(w)")
    assert found.passes == ("overlap", "coalesce")
    assert buckets(found) == [(0, 1, 3)]
    assert starts(found) == [3]


@pytest.mark.parametrize(
    "body",
    [
        "all_reduce(x)\nall_reduce(z)",
        "all_reduce(x)\nall_reduce(y, op=max)",
        "all_reduce(x)\nbroadcast(y, src=0)",
        "broadcast(x, src=0)\nbroadcast(y, src=1)",
        "reduce(x, dst=0)\nreduce(y, dst=0)",
        "all_reduce(x)\nall_reduce(x)",
        "all_reduce(x)\nx -> y\nall_reduce(y)",
        "all_reduce(x)\nbarrier()\nall_reduce(y)",
        "all_reduce(x)\nif rank == 1:\n    compute(1ms)\nall_reduce(y)",
        "group g = ranks\nall_reduce(x)\nall_reduce(y, group=g)",
    ],
)
def test_what_stays_apart(body: str) -> None:
    assert buckets(plan(body)) == []


def test_a_member_with_a_message_in_between_keeps_them_apart_for_all() -> None:
    body = (
        "all_reduce(x)\nif rank == 0:\n    send(w, dst=1)\nif rank == 1:\n    recv(w, src=0)\n"
        "all_reduce(y)"
    )
    assert buckets(plan(body, 3)) == []


def test_subgroups_have_buckets_of_their_own() -> None:
    found = plan("mesh a = 2, b = 2\nall_reduce(x, group=b)\nall_reduce(y, group=b)", 4)
    assert [(turn, count) for _, turn, count in buckets(found)] == [(0, 2), (0, 2)]
    assert all(starts(found, rank) == [2] for rank in range(4))


def test_large_ones_go_alone_and_full_buckets_are_closed() -> None:
    body = "all_reduce(x)\nall_reduce(y)"
    assert buckets(plan(body, n=SMALL // 4)) == [(0, 0, 2)]
    assert buckets(plan(body, n=SMALL // 4 + 1)) == []
    text = f"pattern f(x: float32[k, n], k = 40, n = {SMALL // 4}):\n"
    text += "    for i in range(k):\n        all_reduce(x[i])\n"
    found = commlang.loads(text, "f").plan(world=2, schedule="overlap")
    assert buckets(found) == [(0, 0, 16), (0, 16, 16), (0, 32, 8)]
    assert FULL == 16 * SMALL


def test_a_plan_keeps_its_buckets() -> None:
    found = plan("all_reduce(x)\nall_reduce(y)")
    again = Plan.from_json(found.to_json())
    assert again.buckets == found.buckets
    assert again.fingerprint == found.fingerprint
    assert starts(again) == [2]
    assert again.fingerprint != plan("all_reduce(x)\nall_reduce(x)").fingerprint
