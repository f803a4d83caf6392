"""A rehearsal of benchmarks/device.py on ranks of the CPU; as in `executor_work`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from unittest import mock

import torch

from benchmarks import device
from tests.execute.executor_work import joined

if TYPE_CHECKING:
    from pathlib import Path


class Event:
    """What is used of torch.cuda.Event, by the host's clock."""

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.at = 0.0

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        assert self.at

    def elapsed_time(self, end: Event) -> float:
        return 1e3 * (end.at - self.at)


def rehearsed(rank: int, size: int, path: Path) -> list[device.Row]:
    """A row as it is measured, and one for which the ranks expect something else."""
    cpu = torch.device("cpu")
    with joined(rank, size, path), mock.patch.object(torch.cuda, "Event", Event):
        right = device.measure(4096, cpu)
        with mock.patch.object(device, "expected", lambda ranks, n: torch.zeros(n)):
            return [right, device.measure(4096, cpu)]
