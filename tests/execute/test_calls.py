"""Direct calls: chosen where torch has what they need, and seen by torch's own tools."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist

from commlang.execute import calls, surroundings
from commlang.execute.stores import HashStore
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


@pytest.mark.parametrize(
    "changed",
    [
        {"_NEEDED": {"AllreduceOptions": ("reduceOp", "a_field_of_another_torch")}},
        {"_NEEDED": {"OptionsOfAnotherTorch": ()}},
        {"_METHODS": {"a_method_of_another_torch": (2, "opts")}},
        {"_METHODS": {"allreduce": (5, "opts")}},
        {"_METHODS": {"send": (3, "an_argument_of_another_torch")}},
    ],
)
def test_public_calls_are_taken_where_torch_differs(changed: dict[str, Any]) -> None:
    store = HashStore()
    group = dist.ProcessGroup(store, 0, 1)
    assert calls.has_direct_calls(group)
    with work.public_only(**changed):
        assert not calls.has_direct_calls(group)
        assert type(calls.calls_on(group)) is calls.PublicCalls
    assert type(calls.calls_on(group)) is calls.DirectCalls


def test_flight_recorder_and_profiler_see_what_they_see_of_calls_by_hand(ranks: Any) -> None:
    statements = {"all_reduce(x, op=max) (<text>:2:5)", "wait(h) (<text>:18:5)"}
    for found in ranks(work.seen_by_tools, 2):
        recorded, profiled = found["by hand"]
        assert [entry[0] for entry in recorded][:3] == [
            "gloo:all_reduce",
            "gloo:reduce",
            "gloo:broadcast",
        ]
        of_torch = {name for name in profiled if "c10d" in name or "gloo" in name}
        assert {"c10d::allreduce_", "c10d::send", "gloo:all_reduce", "gloo:recv"} <= of_torch
        assert not any("<text>" in name for name in profiled)
        for way in ("direct", "public"):
            assert found[way][0] == recorded, way
            assert of_torch <= set(found[way][1]), way
            assert statements <= set(found[way][1]), way


def test_gradients_are_left_to_externs(ranks: Any) -> None:
    assert ranks(work.gradients, 2) == [[[4.0], [2.0] * 4, True, False]] * 2


def test_a_torch_without_the_guard_runs_beneath_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "_torch_c", object())
    with surroundings.below_autograd(), surroundings.below_autograd():
        assert (torch.ones(1, requires_grad=True) * 2).requires_grad


def test_the_guard_can_be_used_again_and_ends() -> None:
    guard = surroundings.below_autograd()
    leaf = torch.ones(1, requires_grad=True)
    for _ in range(2):
        with guard:
            assert not (leaf * 2).requires_grad
        assert (leaf * 2).requires_grad


def test_the_timeout_of_the_group_holds(ranks: Any) -> None:
    told = ranks(work.timed_out, 2)[0]
    assert told.startswith("rank 0 at `all_reduce(x)` (<text>:3:5): ")


def test_debug_wrappers_compare_the_calls(ranks: Any) -> None:
    for told in ranks(work.debugged, 2):
        assert "Detected mismatch between collectives on ranks" in told
