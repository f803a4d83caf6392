"""Executors and hooks on a DeviceMesh of four gloo ranks: whose groups they use, and what fits."""

from __future__ import annotations

from typing import Any

from tests.execute import mesh_work as work


def test_patterns_run_on_the_groups_of_a_mesh_or_are_refused(ranks: Any) -> None:
    found = ranks(work.scenarios, 4)
    axes_use_the_groups_of_the_mesh([binds for binds, *_ in found])
    one_plan_at_a_time_runs_on_a_group([once for _, once, *_ in found])
    what_does_not_fit_is_refused_in_the_words_of_both_sides([told for *_, told, _ in found])
    gone = "torch.distributed is not initialised; call init_process_group first, or use `with "
    assert [told for *_, told in found] == [f"{gone}commlang.process_group():`"] * 4


def axes_use_the_groups_of_the_mesh(ranks: list[Any]) -> None:
    refused = (
        "the DeviceMesh (dp = 1, tp = 2) has the ranks [{0}, {1}] in row-major order, and no "
        "process group has these; let all ranks of the mesh that it is a part of call its "
        "`_flatten()` before, or give one of its dims"
    )
    for rank, found in enumerate(ranks):
        first, second, by_dim, by_all, part, apart = found
        row, column = rank // 2 * 2, rank % 2
        sums = [float(2 * row + 1), float(2 * column + 2)]
        assert first == second == [[True, True, True], sums, 0]
        assert by_dim == [True, [float(2 * row + 1), float(rank ^ 1)], 0]
        before = (rank - 1) % 4
        assert by_all == [True, [float(rank + before), float(before)], 0]
        told = refused.format(row, row + 1)
        assert part == [told, [True, True], [float(2 * row + 1), float(rank)], 0]
        assert apart == [[[True], [6.0], 0], [[False], [24.0], 1]]


def what_does_not_fit_is_refused_in_the_words_of_both_sides(ranks: list[Any]) -> None:
    ours = "the DeviceMesh is (dp = 2, tp = 2)"
    in_order = "has the ranks {} in row-major order"
    expected = [
        f"`grid` has the mesh (pp = 2, tp = 2), {ours}: it has no axis `pp`; use "
        'mesh_dim_names=("pp", "tp")',
        "`grid` has the mesh (dp = 2, tp = 2), the DeviceMesh is (2 x 2): it has no axis `dp`; "
        'use mesh_dim_names=("dp", "tp")',
        f"`grid` has the mesh (dp = 4, tp = 1), {ours}: axis `dp` has another size; plan for 2",
        f"`grid` has the mesh (tp = 2, dp = 2), {ours}: axis `tp` joins ranks [0, 2] there and "
        "[0, 1] here; have the axes in one order",
        "the plan is for 8 ranks, the DeviceMesh (dp = 2, tp = 2) has 4",
        f"the DeviceMesh (dp = 2, tp = 2) {in_order.format([0, 2, 1, 3])}, and a process group "
        "that torch makes for them has [0, 1, 2, 3]; make the mesh with its ranks in that order, "
        "or give one of its dims",
        f"the DeviceMesh (dp = 4) {in_order.format([3, 2, 1, 0])}, its process group "
        "[0, 1, 2, 3]; make the mesh with its ranks in that order",
    ]
    for rank, found in enumerate(ranks):
        *first, outside, destroyed, dim_destroyed = found
        assert first == expected
        outsider = "this rank is not in the DeviceMesh (dp = 2), so it makes no Executor on it"
        assert outside == ("" if rank < 2 else outsider)
        assert destroyed == "a process group of the DeviceMesh was destroyed; make another mesh"
        assert dim_destroyed == (
            "a process group of the DeviceMesh (tp = 2) was destroyed; make another mesh"
        )


def one_plan_at_a_time_runs_on_a_group(ranks: list[Any]) -> None:
    for during, after in ranks:
        assert during.startswith("a plan runs on this process group already, in another thread")
        assert after == ""
