"""What an operation that was started returns, as `torch.distributed` wants it."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from mpi4py import MPI

from commlang.execute.mpi.library import progress

if TYPE_CHECKING:
    from commlang.execute.mpi.action import Action

_NO_TIMEOUT = timedelta(0)
"""What torch passes for "as long as it takes"."""

_abandoned: list[tuple[MPI.Request, Action]] = []
"""What is under way although nobody holds its work any more; MPI still uses the buffers."""


class MpiWork(dist.Work):
    """A request of MPI with its buffers.

    `wait` takes an optional limit; after it the operation is still under way, and nothing else can
    be known of the group, so that the process had better end.
    """

    def __init__(self, action: Action, request: MPI.Request) -> None:
        super().__init__()
        self._action = action
        self._request = request
        self._status = MPI.Status() if action.message else None
        self._over = False
        self._error: Exception | None = None
        self._future: torch.futures.Future[Any] | None = None

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Wait until the tensors may be used again; raises what MPI says, or DistBackendError."""
        if self._future is not None and not self._over:
            self._await_future()
        elif not self._over:
            self._await_request(timeout.total_seconds())
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether `wait` would return at once."""
        return self._over or (self._future is None and self.settle())

    def is_success(self) -> bool:
        """Whether the operation is over, without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """The error that `wait` raises, if any."""
        return self._error

    def synchronize(self) -> None:
        """The same as `wait`, on the CPU."""
        self.wait()

    def result(self) -> list[torch.Tensor]:
        """The tensors that the operation fills."""
        return list(self._action.results)

    def source_rank(self) -> int:
        """The rank, in its group, from which a message came."""
        assert self._status is not None, "only a receive has a source"
        return self._status.source

    def _source_rank(self) -> int:
        return self.source_rank()

    def get_future(self) -> torch.futures.Future[Any]:
        """A future of `result`, completed by a thread; where MPI allows none, before it returns."""
        if self._future is None:
            future = torch.futures.Future[Any]()
            thread = progress()
            if thread is None:
                with suppress(Exception):  # which the future tells
                    self.wait()
            self._future = future
            if self._over:
                self._tell(future)
            elif thread is not None:
                thread.complete(self)
        return self._future

    def settle(self) -> bool:
        """Finish the work if MPI has; returns whether it is over."""
        try:
            if not self._request.Test(self._status):
                return False
        except MPI.Exception as error:
            self._error = error
        self._finish()
        return True

    def _await_future(self) -> None:
        assert self._future is not None
        with suppress(RuntimeError):  # the same error is raised from here
            self._future.wait()

    def _await_request(self, limit: float) -> None:
        if limit > 0:
            self._poll(limit)
            return
        try:
            self._request.Wait(self._status)
        except MPI.Exception as error:
            self._error = error
        self._finish()

    def _poll(self, limit: float) -> None:
        deadline = time.monotonic() + limit
        while not self.settle():
            if time.monotonic() > deadline:
                raise dist.DistBackendError(f"{self._action.name} is not over after {limit:g} s")
            time.sleep(1e-5)

    def _finish(self) -> None:
        if self._error is None:
            try:
                self._action.finish(self._status)
            except Exception as error:
                self._error = error
        self._over = True
        if self._future is not None:
            self._tell(self._future)

    def _tell(self, future: torch.futures.Future[Any]) -> None:
        if self._error is None:
            future.set_result(self.result())
        else:
            future.set_exception(self._error)

    def __del__(self) -> None:
        if not getattr(self, "_over", True):
            _abandoned.append((self._request, self._action))


class Finished(dist.Work):
    """An operation that was over before its call returned."""

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """There is nothing to wait for."""
        del timeout
        return True

    def is_completed(self) -> bool:
        """It is."""
        return True


def collect_abandoned() -> None:
    """Finish abandoned operations that are over by now."""
    if not _abandoned:
        return
    under_way = _abandoned.copy()
    _abandoned.clear()
    for request, action in under_way:
        if request.Test():
            action.finish(None)
        else:
            _abandoned.append((request, action))
