"""Messages that NCCL is given as one batch, and one group in flight where more might lock up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import commlang
from commlang.errors import PatternError
from commlang.schedule import Act

if TYPE_CHECKING:
    from commlang.plan import Plan

HEAD = "pattern f(x: float32[n], y: float32[n], z: float32[n], w: float32[n], n = 8):\n"
NEIGHBOURS = """\
if rank % 2 == 0:
    send(x, dst=rank + 1)
    recv(y, src=rank + 1)
else:
    recv(y, src=rank - 1)
    send(x, dst=rank - 1)
fill(z, 0)
"""
THREE = """\
group a = ranks
group b = ranks
group c = ranks
all_reduce(x, group=a)
all_reduce(y, group=b)
all_reduce(z, group=c)
fill(w, 0)
"""


def plan(body: str, world: int, backend: str | None = "nccl") -> Plan:
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    return commlang.loads(text, "f").plan(world, backend=backend, nccl_init="eager")


def acts(found: Plan, rank: int = 0) -> list[tuple[str, int]]:
    return [(a.act.value, len(a.rows)) for a in found.actions(rank)]


def test_neighbouring_messages_are_one_batch() -> None:
    found = plan(NEIGHBOURS, 2)
    assert found.passes == ("overlap", "batch")
    for rank in range(2):
        assert acts(found, rank) == [("start", 2), ("run", 1), ("join", 2)]
    assert found.proofs[-1] == "deadlock-free on nccl (eager communicators)"


def test_elsewhere_they_are_started_one_by_one() -> None:
    found = plan(NEIGHBOURS, 2, "gloo")
    assert found.passes == ("overlap",)
    assert acts(found) == [("start", 1), ("start", 1), ("run", 1), ("join", 2)]


def test_a_batch_that_would_have_no_order_is_two() -> None:
    body = "if rank == 0:\n    send(x, dst=1)\n    send(y, dst=1)\n"
    body += "if rank == 1:\n    recv(x, src=0)\n    recv(y, src=0)\n"
    found = plan(body, 2)
    assert "batch" not in found.passes
    assert acts(found) == [("start", 1), ("start", 1), ("join", 2)]


def test_a_batch_that_the_check_objects_to_is_not_made() -> None:
    """A batch moves as a whole on NCCL, so that halves which wait for each other would hang."""
    body = """\
if rank == 0:
    send(x, dst=1)
    recv(y, src=2)
if rank == 1:
    recv(x, src=0)
    y -> x
    send(x, dst=2)
if rank == 2:
    recv(x, src=1)
    x -> w
    send(w, dst=0)
"""
    assert [a.rows for a in plan(body, 3).actions(0) if a.act is Act.BATCH] == []
    assert acts(plan(body, 3)) == [("start", 1), ("start", 1), ("join", 2)]


def test_one_group_at_a_time_where_three_may_lock_up() -> None:
    found = plan(THREE, 2)
    assert found.passes == ("overlap by group",)
    assert acts(found) == [("run", 1), ("run", 1), ("start", 1), ("run", 1), ("join", 1)]


def test_a_plan_for_any_backend_is_sound_on_nccl_too() -> None:
    assert plan(THREE, 2, None).passes == ("overlap by group",)
    assert plan(THREE, 2, "gloo").passes == ("overlap",)


def test_what_hangs_on_nccl_is_refused_for_it_alone() -> None:
    crossing = "a = async send(x, dst=ranks.next)\nrecv(y, src=ranks.prev)\nwait(a)\n"
    assert plan(crossing, 2, "gloo").passes
    with pytest.raises(PatternError, match="hangs on NCCL"):
        plan(crossing, 2)
