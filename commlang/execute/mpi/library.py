"""MPI itself: started on first use, and ended so that no rank waits for one that failed."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from mpi4py import MPI
from mpi4py.run import set_abort_status

from commlang.errors import UsageError
from commlang.execute.mpi.found import differs
from commlang.execute.mpi.progress import Progress

if TYPE_CHECKING:
    from types import TracebackType


@cache
def world() -> MPI.Intracomm:
    """All ranks of the job; from now on a rank that ends by an exception ends the job."""
    _abort_after_exceptions()
    return MPI.COMM_WORLD


def world_of(rank: int, size: int) -> MPI.Intracomm:
    """`world`, if it says the same of this rank; raises UsageError if not."""
    everyone = world()
    if (everyone.rank, everyone.size) != (rank, size):
        raise UsageError(differs(everyone.rank, everyone.size, rank, size))
    return everyone


@cache
def progress() -> Progress | None:
    """The thread that keeps MPI going; None where MPI allows only one thread to call it."""
    return Progress() if MPI.Query_thread() == MPI.THREAD_MULTIPLE else None


def _abort_after_exceptions() -> None:
    """Python's exit ends MPI, which waits for all ranks: after a failure that may be for ever."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        set_abort_status(error if isinstance(error, KeyboardInterrupt) else 1)
        return previous(kind, error, trace)

    sys.excepthook = hook
