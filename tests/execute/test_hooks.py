"""Patterns in DDP's and FSDP2's place: a small model on four gloo ranks learns the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.execute import hooks_work as work

ROUNDING = 1e-5
"""Sums of four float32 in another order, of gradients of about 1 to 100."""


def test_ddp_learns_the_same_with_a_pattern_for_its_buckets(ranks: Any) -> None:
    for by_backend, by_ring in ranks(work.ddp, 4):
        (far, seen), (far_by_ring, seen_by_ring) = by_backend, by_ring
        assert far == [0.0] * work.STEPS, "the same operations on the same data"
        assert max(far_by_ring) < ROUNDING
        assert seen == seen_by_ring
        sizes = [{n for at, n in seen if at == index} for index in range(3)]
        assert all(sizes), "several buckets"
        assert any(len(known) > 1 for known in sizes), "rebuilt with another size"


@pytest.mark.slow
def test_ddp_learns_the_same_with_whatever_a_table_chooses(ranks: Any) -> None:
    for far, chosen in ranks(work.ddp_auto, 4):
        assert max(far) < ROUNDING
        assert chosen == {"star_all_reduce"}


def test_ddp_hooks_refuse_what_they_cannot_run(ranks: Any) -> None:
    for two, unfit in ranks(work.ddp_refusals, 2):
        assert two.startswith("`ring_all_gather` has the tensors whole, part; it needs 1: a bucket")
        assert "float64" in unfit
        assert "float32" in unfit


def test_a_ddp_hook_is_of_no_more_use_once_an_operation_has_timed_out(ranks: Any) -> None:
    found = ranks(work.ddp_missing, 3)
    assert found[1] == []
    for first, again, other_bucket in (found[0], found[2]):
        assert "with rank" in first or "nothing was heard of rank 1" in first
        assert "this Executor stopped in the middle of a run (rank" in again
        assert "an operation on this process group has failed (rank" in other_bucket


def test_fsdp_learns_the_same_with_patterns_and_so_does_ddp_on_a_dim_of_a_mesh(ranks: Any) -> None:
    for by_backend, by_ring, by_dim in ranks(work.fsdp, 4):
        assert by_backend == [0.0] * work.STEPS
        assert max(by_ring) < ROUNDING
        assert by_dim == [0.0, 0.0]
