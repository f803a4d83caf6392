"""Runs in the background: one thread that takes them in order, and handles to wait for them."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_futures: Any = torch.futures  # whose types are not complete


class Run(Generic[T]):
    """A run under way, as torch's `Work` for one operation: `wait` before the data are used.

    On CUDA, `wait` holds up the current stream, not the host beyond the issue of the operations.
    """

    def __init__(self, future: Future[T], device: torch.device, done: torch.cuda.Event | None):
        self._future = future
        self._device = device
        self._done = done

    def wait(self, timeout: float | None = None) -> T:
        """What the run returns, or raises; raises TimeoutError after `timeout` seconds."""
        result = self._future.result(timeout)
        if self._done is not None:
            torch.cuda.current_stream(self._device).wait_event(self._done)
        return result

    def is_completed(self) -> bool:
        """Whether the run has ended, well or not."""
        return self._future.done() and (self._done is None or self._done.query())

    def get_future(self) -> torch.futures.Future[T]:
        """The same as torch's own future, as a communication hook of DDP returns it."""
        cuda = self._done is not None
        result = _futures.Future(devices=[self._device] if cuda else None)

        def pass_on(future: Future[T]) -> None:
            error = future.exception()
            if isinstance(error, Exception):
                result.set_exception(error)
            elif error is None:
                if self._done is not None:
                    torch.cuda.current_stream(self._device).wait_event(self._done)
                result.set_result(future.result())

        self._future.add_done_callback(pass_on)
        return result


class Worker:
    """One thread that runs what it is given in that order; its operations are on a side stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = ThreadPoolExecutor(1, "commlang-run", self._begin)
        self._last: Future[Any] | None = None
        self._thread = -1
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    @property
    def is_busy_for_others(self) -> bool:
        """Whether something is still to be done, and not by the thread that asks."""
        busy = self._last is not None and not self._last.done()
        return busy and threading.get_ident() != self._thread

    def _begin(self) -> None:
        self._thread = threading.get_ident()
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)

    def submit(self, work: Callable[[], T]) -> Run[T]:
        """Do some work after all that was submitted before, and after the current stream's."""
        if self._stream is None:
            self._last = self._pool.submit(work)
            return Run(self._last, self._device, None)
        stream, done, ready = self._stream, torch.cuda.Event(), torch.cuda.Event()
        ready.record(torch.cuda.current_stream(self._device))

        def on_stream() -> Any:
            with torch.cuda.stream(stream):
                stream.wait_event(ready)
                result = work()
                done.record(stream)
                return result

        self._last = self._pool.submit(on_stream)
        return Run(self._last, self._device, done)

    def close(self) -> None:
        """Wait for all that was submitted, and end the thread."""
        self._pool.shutdown()
