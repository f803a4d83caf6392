"""Operations of MPI with all that can be decided before they start, to be done once or again.

MPI lets no blocking collective meet a nonblocking one, whereas `torch.distributed` leaves it to
each rank whether it waits, and so do plans, whose overlap may differ between ranks. So all are
MPI's nonblocking ones, also those that are waited for at once, except where all ranks have said
that they wait: blocking ones are faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from commlang.execute.mpi.work import MpiWork, collect_abandoned
from commlang.records import entity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch


@entity
class Action:
    """One operation, bound to its tensors, whose memory `held` keeps.

    `issue` has MPI start it, `block` has MPI do it. `before` and `after` are the copies that go
    with it. For what is received, `message` is the expected number of elements and MPI's type of
    one.
    """

    name: str
    issue: Callable[..., MPI.Request]
    block: Callable[..., object]
    arguments: tuple[Any, ...]
    before: Sequence[Callable[[], object]] = ()
    after: Sequence[Callable[[], object]] = ()
    results: Sequence[torch.Tensor] = ()
    held: Sequence[torch.Tensor] = ()
    message: tuple[int, MPI.Datatype] | None = None

    def run(self) -> None:
        """Do it and return when it is over."""
        status = MPI.Status() if self.message else None
        self._begin().Wait(status)
        self.finish(status)

    def run_blocking(self) -> None:
        """`run` for a collective in which no rank does otherwise."""
        for step in self.before:
            step()
        self.block(*self.arguments)
        for step in self.after:
            step()

    def start(self) -> MpiWork:
        """Begin it; the work that is returned finishes it."""
        collect_abandoned()
        return MpiWork(self, self._begin())

    def finish(self, status: MPI.Status | None) -> None:
        """What is left once MPI is done; raises RuntimeError for a message of another length."""
        if self.message is not None and status is not None:
            expected, unit = self.message
            count = status.Get_count(unit)
            if count != expected:
                raise RuntimeError(
                    f"rank {status.source} sent {count} elements where {expected} are received"
                )
        for step in self.after:
            step()

    def _begin(self) -> MPI.Request:
        for step in self.before:
            step()
        return self.issue(*self.arguments)
