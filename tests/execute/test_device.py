"""benchmarks/device.py, as far as it goes without a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from benchmarks import device
from tests.execute import device_work

if TYPE_CHECKING:
    import pytest


def test_without_cuda_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device.main() == 2
    assert capsys.readouterr().out == (
        "there is no CUDA device that torch can use; run this on a machine with one\n"
    )


def test_values_tell_ranks_and_places_apart() -> None:
    assert device.start_values(2, 3).tolist() == [2.0, 3.0, 4.0]
    assert device.expected(3, 3).tolist() == [3.0, 6.0, 9.0]


def test_a_rehearsal_on_the_cpu_checks_and_times(ranks: Any) -> None:
    for right, wrong in ranks(device_work.rehearsed, 2):
        assert (right.size, right.right, wrong.right) == (4096, True, False)
        for times in (right.hand, right.plan):
            assert 0 < times[0] <= times[1] <= times[2]


def test_a_row_is_one_line() -> None:
    row = device.Row(1 << 20, False, [1.0, 2.0, 4.0], [0.5, 1.0, 2.0])
    told = " ".join(row.text("nccl", 1).split())
    assert told == "nccl 1 1048576 WRONG 1.000 / 2.000 / 4.000 0.500 / 1.000 / 2.000 0.50"
    assert device.tenths([1.0, 2.0, 3.0]) == [1.2, 2.0, 2.8]
