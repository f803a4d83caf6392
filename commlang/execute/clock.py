"""When each step of a run ended, by the host's clock or by events of a CUDA stream."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def settle_on(device: torch.device) -> Callable[[], object]:
    """Wait for the device, which runs behind the host."""
    if device.type == "cuda":
        return lambda: torch.cuda.synchronize(device)
    return lambda: None


def clock_on(device: torch.device, marks: int, *, stepwise: bool) -> HostClock | DeviceClock:
    """A clock for so many marks; `stepwise`, the device is waited for at each of them.

    So a device that hangs does so at its step. Otherwise steps on CUDA are timed by events, and
    the host runs ahead of them as it does in a program.
    """
    if device.type == "cuda" and not stepwise:
        return DeviceClock(device, marks)
    return HostClock(device, marks)


class HostClock:
    """Marks of the host's clock, each once the device has done what was issued before."""

    zero = 0.0
    """What is to be added to marks for `time.perf_counter`."""

    def __init__(self, device: torch.device, marks: int) -> None:
        self._marks = [0.0] * marks
        self._settle = settle_on(device)

    def mark(self, number: int) -> None:
        """Everything that was issued before ends here."""
        self._settle()
        self._marks[number] = time.perf_counter()

    def read(self) -> list[float]:
        """The time of each mark, in seconds from any point."""
        return self._marks


class DeviceClock:
    """Marks on the device's current stream; one that waits for a collective waits there, too."""

    def __init__(self, device: torch.device, marks: int) -> None:
        self._device = device
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(marks)]
        self.zero = 0.0
        """The host's clock at mark 0, which the device, having nothing else to do, soon reaches."""

    def mark(self, number: int) -> None:
        """What the current stream was given before ends here."""
        self._events[number].record(torch.cuda.current_stream(self._device))
        if not number:
            self.zero = time.perf_counter()

    def read(self) -> list[float]:
        """Wait for the last mark; seconds from the first to each."""
        first, last = self._events[0], self._events[-1]
        last.synchronize()
        return [first.elapsed_time(event) / 1e3 for event in self._events]
