"""The Executor on real gloo ranks: its tensors, its groups, its externs, and how it fails."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import commlang
from tests.execute import executor_faults as faults
from tests.execute import executor_work as work
from tests.ports import free_port

if TYPE_CHECKING:
    from types import ModuleType

PARAMETERS = ["rank", "size", "path"]


# ----------------------------------------------------------------- running


def test_a_plan_runs_on_the_callers_tensors(ranks: Any) -> None:
    for rank, found in enumerate(ranks(work.runs, 3)):
        once = [rank + (rank - 1) % 3 for rank in range(3)]
        twice = [once[rank] + once[rank - 1] for rank in range(3)]
        thrice = [twice[rank] + twice[rank - 1] for rank in range(3)]
        values = [once[rank], twice[rank], thrice[rank], once[rank], once[rank], once[rank]]
        assert found == [[float(value)] * 8 for value in values]


def test_tensors_may_be_parts_of_others(ranks: Any) -> None:
    column = [2 * 7.0, 2 * 11.0, 2 * 15.0]
    for y, written, kept in ranks(work.parts_of_tensors, 2):
        assert y == [0.0] * 3 + column + [0.0] * 6
        assert (written, kept) == (column, [8.0, 12.0, 16.0])


def test_a_run_in_the_background_is_waited_for_and_tells_of_its_failure(ranks: Any) -> None:
    unfit = "tensor `x` is float32 [9], the plan needs float32 [8]"
    for rank, found in enumerate(ranks(work.in_background, 3)):
        once = [float(r + (r - 1) % 3) for r in range(3)]
        twice = once[rank] + once[rank - 1]
        assert found == [True, True, [twice] * 8, True, unfit, unfit, True]


def test_messages_of_several_groups_are_a_batch_for_each_in_the_order_of_groups(ranks: Any) -> None:
    for rank, (batches, y, z, passed, swapped) in enumerate(ranks(work.launches, 4)):
        row, column = [rank // 2 * 2, rank // 2 * 2 + 1], [rank % 2, rank % 2 + 2]
        assert batches == [
            [("isend", column), ("irecv", column)],
            [("isend", row), ("irecv", row)],
        ]
        assert y == [float((rank + 2) % 4)] * 2
        assert z == [float(rank ^ 1)] * 2
        both = ["isend", "irecv"] if rank % 2 == 0 else ["irecv", "isend"]
        assert passed == [[(name, [0, 1, 2, 3]) for name in both]]
        assert swapped == [float(rank ^ 1)] * 2


def test_empty_tensors_scalars_and_all_dtypes_of_gloo(ranks: Any) -> None:
    for found in ranks(work.edges, 2):
        assert len(found) == 22


def test_tensors_that_do_not_fit_are_refused_before_anything_runs(ranks: Any) -> None:
    expected = [
        "tensor `x` is int32 [8], the plan needs float32 [8]",
        "tensor `x` is float32 [9], the plan needs float32 [8]",
        "tensor `x` is not contiguous; give one that is, as x.contiguous() makes, and copy the "
        "result back if x itself is wanted",
        "tensor `x` is on meta, the Executor on cpu; move it, or give the Executor another device=",
        "`ring` has no tensor `z`; it has x, y",
        "`x` is a list; give a torch.Tensor",
        "tensors `x` and `y` share memory; the plan was checked for tensors apart, so give a copy "
        "of one",
        "tensor `x` is not contiguous; give one that is, as x.contiguous() makes, and copy the "
        "result back if x itself is wanted",
        "tensor `x` is a lazy view; give x.resolve_conj().resolve_neg()",
        "use the Executor in a `with` statement",
        "the plan is for 3 ranks, the process group has 2",
        "the group (cpu:gloo,cuda:gloo) moves no tensors on meta",
        "torch.distributed is not initialised; call init_process_group first, or use `with "
        "commlang.process_group():`",
    ]
    for found in ranks(work.refusals, 2):
        assert found == expected


def test_an_executor_opens_again(ranks: Any) -> None:
    gone = "the process group of this Executor was destroyed; make another one"
    assert ranks(work.opened_again, 4) == [([64.0] * 4, gone)] * 4


# ------------------------------------------------------- joining and groups


def test_ranks_meet_by_env_tcp_and_file(ranks: Any, tmp_path: Path) -> None:
    (tmp_path / "port").write_text(str(free_port(2)))
    assert ranks(work.ways, 2) == [[([4.0] * 4, False)] * 3] * 2


def test_subgroups_take_backend_timeout_and_order_from_group_and_plan(ranks: Any) -> None:
    for found in ranks(work.settings, 3):
        assert found == [
            ([0.0, 0.0], [2, 1, 0], "cpu:gloo", 77.0, 77.0),
            ([0.0, 0.0], [2, 1, 0], "cpu:gloo", 55.0, 55.0),
        ]


def test_disjoint_groups_run_their_own_plans(ranks: Any) -> None:
    found = ranks(work.apart, 5)
    ring = [[float(rank + (rank - 1) % 5)] * 8 for rank in range(5)]
    for rank, first in ((3, 0.0), (1, 1.0), (0, 0.0)):  # ranks 0, 1 and 2 of that group
        assert found[rank] == [[first] * 2] * 4 + [ring[rank], [5.0]]
    for rank in (4, 2):
        assert found[rank] == [[6.0] * 4] * 2 + [ring[rank], [5.0]]


def test_nothing_piles_up_in_the_store(ranks: Any) -> None:
    for first, second, third in ranks(work.tidy, 3):
        assert first == second == third


# --------------------------------------------------------------- agreement


def test_a_missing_rank_is_named_to_all_and_all_may_try_again(ranks: Any) -> None:
    message = (
        "rank 1 did not enter the Executor of `ring` within 3 s of the others; every rank of "
        "the group has to"
    )
    sums = [2.0, 1.0, 3.0]
    assert ranks(work.missing, 3) == [[message, str(value)] for value in sums]


def test_a_store_whose_process_has_ended_is_told_from_a_missing_rank(
    ranks: Any, tmp_path: Path
) -> None:
    (tmp_path / "port").write_text(str(free_port(2)))
    told = ranks(work.store_ends, 2)[1]
    assert told.startswith("rank 1 cannot reach the store in which the ranks meet (")
    assert told.endswith("); the process that serves it has probably ended")


def test_a_rank_with_another_plan_is_named_with_the_difference(ranks: Any) -> None:
    for n, text, pattern, version in ranks(work.other_plan, 4):
        start = "rank 2 runs another plan than ranks 0, 1, 3: "
        assert n.startswith(f"{start}parameters n = 9, not n = 8; plan of fingerprint ")
        assert re.fullmatch(f"{start}text of digest (\\w+), not (\\w+); plan of .*", text)
        assert pattern.startswith(f"{start}pattern halves, not ring; ")
        assert version.startswith(f"{start}commlang 0.0.9, not {commlang.__version__}")


def test_plans_are_compared_where_there_is_no_store(ranks: Any) -> None:
    for same, other in ranks(work.without_store, 3):
        assert same == ""
        assert other.startswith("rank 2 runs another plan than ranks 0, 1: parameters n = 9")


def test_ranks_run_a_plan_that_one_of_them_wrote(ranks: Any, tmp_path: Path) -> None:
    (tmp_path / "file.cl").write_text(work.HALVES)
    found = ranks(work.by_json, 4)
    assert found == [[([6.0] * 4, [rank])] * 2 for rank in range(4)]


# ---------------------------------------------------------------- failures


def test_externs_are_python_callables_on_tensors_of_their_shape(ranks: Any) -> None:
    for found in ranks(faults.externs, 2):
        assert found == [
            "extern `step` of `f` has no Python callable; give externs={'step': …}, or "
            "stand_in=True to only take its time",
            "`f` has no extern `stop`; did you mean `step`?",
            ((2, 2), 7, (2,)),
            [[0.0, 0.0], [16.0, 18.0], [16.0, 18.0], [0.0, 0.0]],
        ]


def test_an_extern_that_raises_is_named_with_rank_and_statement(ranks: Any) -> None:
    found = ranks(faults.extern_raises, 3)
    where = "at `step(x[1:3], 7, y)` (<text>:4:5)"
    assert found[1][:2] == [f"rank 1 {where}: LookupError: no such weight", "LookupError"]
    for rank in (0, 2):
        assert found[rank][0].startswith(f"rank {rank} at `all_reduce(x, group=g)` (<text>:6:5): ")
        assert found[rank][0].endswith(f"; before that, {found[1][0]}")
        assert found[rank][1] == "RuntimeError"
    for told in found:
        assert told[2].startswith(f"this Executor stopped in the middle of a run ({told[0]})")
        assert told[3] == told[2]
        assert told[4] == "3.0"


def test_a_rank_that_leaves_the_block_is_noticed_at_once(ranks: Any) -> None:
    found = ranks(faults.raises_between, 4)
    assert found[0] == ["4.0"]
    for told in found[1:]:
        # Rank 3 meets rank 0 in no group; it is told by those who do.
        assert "at `all_reduce(x, group=" in told[0]
        if "rank 3" not in told[0]:
            cause = "; before that, rank 0 left the Executor between two runs: ZeroDivisionError"
            assert told[0].endswith(cause)
        assert told[1] == "4.0"


def test_a_run_that_times_out_is_named_and_the_executor_runs_no_more(ranks: Any) -> None:
    found = ranks(faults.times_out, 3)
    assert found[1] == ["3.0"]
    for rank, told in ((0, found[0]), (2, found[2])):
        assert re.match(
            rf"rank {rank} at `(send|recv)\(.*\)` \(<text>:[56]:9\), with rank 1 at the other end: "
            "Timed out.*; nothing was heard of rank 1, which may not have come there",
            told[0],
        ), told
        assert told[1].startswith(f"this Executor stopped in the middle of a run ({told[0]})")
        assert told[2] == "3.0"
        assert told[3].startswith(f"an operation on this process group has failed ({told[0]})")


def test_a_rank_that_never_runs_is_named_and_the_group_is_given_up(ranks: Any) -> None:
    found = ranks(faults.never_runs, 4)
    assert found[3] == []
    for rank, told in enumerate(found[:3]):
        run, again, other, new = told
        assert run.startswith(f"rank {rank} at `all_reduce(x)` (<text>:2:5): ")
        assert run.endswith("; nothing was heard of rank 3, which may not have come there")
        assert again.startswith(f"this Executor stopped in the middle of a run ({run})")
        assert other == new
        assert other.startswith(f"an operation on this process group has failed ({run})")


def test_a_group_runs_one_plan_at_a_time(ranks: Any) -> None:
    for found in ranks(faults.threads, 2):
        message = (
            "a plan runs on this process group already, in another thread or in an extern; "
            "operations of two would pair up at random, so give each a group of its own"
        )
        assert found == [message, message]


def test_every_scenario_is_tested() -> None:
    text = Path(__file__).read_text()
    named = set(re.findall(r"ranks\(\w+\.(\w+), \d\)", text))
    assert named == {*_scenarios(work), *_scenarios(faults)}


def _scenarios(module: ModuleType) -> list[str]:
    """The functions that take a rank, a size and a path, and nothing else."""
    functions = inspect.getmembers(module, inspect.isfunction)
    return [n for n, f in functions if list(inspect.signature(f).parameters) == PARAMETERS]
