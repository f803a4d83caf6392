"""Direct calls: chosen where torch has what they need, and seen by torch's own tools."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from commlang.execute import calls
from tests.execute import calls_work as work


def test_direct_and_public_calls_give_the_same(ranks: Any) -> None:
    found = ranks(work.both_ways, 2)
    for direct, public, one, other in found:
        assert direct
        assert public
        assert one == other
    assert found[0][2] != found[1][2]  # the ranks' own data went round


def test_a_group_of_another_class_is_called_as_its_author_expects() -> None:
    class Mine(dist.ProcessGroup):
        pass

    assert not calls.has_direct_calls(Mine(0, 1))  # pyright: ignore[reportCallIssue]


def test_flight_recorder_and_profiler_see_the_operations(ranks: Any) -> None:
    for direct, public in ranks(work.seen_by_tools, 2):
        assert direct == public
        recorded, profiled = direct
        assert recorded[:3] == ["gloo:all_reduce", "gloo:reduce", "gloo:broadcast"]
        assert {"c10d::allreduce_", "c10d::send", "gloo:all_reduce", "gloo:recv"} <= set(profiled)


def test_the_timeout_of_the_group_holds(ranks: Any) -> None:
    told = ranks(work.timed_out, 2)[0]
    assert told.startswith("rank 0 at `all_reduce(x)` (<text>:3:5): ")


def test_debug_wrappers_compare_the_calls(ranks: Any) -> None:
    for told in ranks(work.debugged, 2):
        assert "Detected mismatch between collectives on ranks" in told
