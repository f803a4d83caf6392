"""Times of steps: by the host, and by events of a stream that stands in for CUDA's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from commlang.execute.clock import DeviceClock, HostClock, clock_on

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 1)


class Stream:
    """A device's time line in milliseconds; nothing is there before it is waited for."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waited = False


class Event:
    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self, stream: Stream) -> None:
        self.stream, self.at = stream, stream.now

    def synchronize(self) -> None:
        self.stream.waited = True

    def elapsed_time(self, end: Event) -> float:
        assert self.stream.waited
        return end.at - self.at


def test_events_time_what_a_stream_did(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = {CUDA: Stream()}
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", streams.__getitem__)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: pytest.fail("it waited"))
    clock = clock_on(CUDA, 3, stepwise=False)
    assert type(clock) is DeviceClock
    for run in range(2):
        for number, took in enumerate((0.0, 2.0, 5.0)):
            streams[CUDA].now += took + run
            clock.mark(number)
        assert clock.read() == pytest.approx([0.0, 0.002 + 1e-3 * run, 0.007 + 2e-3 * run])


def test_stepwise_waits_for_the_device_at_each_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    clock = clock_on(CUDA, 2, stepwise=True)
    assert type(clock) is HostClock
    clock.mark(0)
    clock.mark(1)
    assert waited == [CUDA, CUDA]
    first, second = clock.read()
    assert first <= second


def test_the_host_times_what_runs_on_it() -> None:
    clock = clock_on(CPU, 2, stepwise=False)
    assert type(clock) is HostClock
    clock.mark(0)
    clock.mark(1)
    first, second = clock.read()
    assert first <= second
