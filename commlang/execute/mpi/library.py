"""MPI itself: started on first use, and ended so that no rank waits for one that failed."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from mpi4py import MPI
from mpi4py.run import set_abort_status

from commlang.errors import UsageError
from commlang.execute.mpi.progress import Progress

if TYPE_CHECKING:
    from types import TracebackType


_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
"""One of these is set for a process that a launcher of MPI has started."""


@cache
def world() -> MPI.Intracomm:
    """All ranks of the job; from now on a rank that ends by an exception ends the job."""
    _abort_after_exceptions()
    return MPI.COMM_WORLD


def world_of(rank: int, size: int) -> MPI.Intracomm:
    """`world`, if it says the same of this rank; raises UsageError if not."""
    # A lone process that starts MPI and fails would leave its shared memory behind.
    alone = not any(name in os.environ for name in _RANK_VARIABLES)
    if alone and size > 1:
        raise UsageError(_differs(0, 1, rank, size))
    everyone = world()
    if (everyone.rank, everyone.size) != (rank, size):
        raise UsageError(_differs(everyone.rank, everyone.size, rank, size))
    return everyone


def _differs(rank: int, size: int, told: int, told_size: int) -> str:
    return (
        f"MPI calls this rank {rank} of {size}, but its environment says rank {told} of "
        f"{told_size}; start the ranks with `mpirun -n {told_size}`"
    )


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
