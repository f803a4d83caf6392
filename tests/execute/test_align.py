"""Clocks of ranks on several hosts, by messages between real gloo ranks."""

from __future__ import annotations

from typing import Any

from commlang.execute.align import clock_name
from commlang.trace.clocks import Clock
from tests.execute import align_work as work


def test_each_rank_learns_how_far_its_clock_is_ahead_of_rank_0s(ranks: Any) -> None:
    (alone, first), (_, second), (_, third) = ranks(work.clocks, 3)
    assert alone == first == Clock(), "one host has one clock"
    assert second == third, "ranks of a host share what the first of them found"
    assert len(second.at) == 2
    for offset, error in zip(second.offset, second.error, strict=True):
        assert 0 < error < 1
        assert abs(offset - (work.AHEAD["b"] - work.AHEAD["a"])) <= error


def test_processes_of_this_host_name_its_clock_alike() -> None:
    assert clock_name() == clock_name() != ""
