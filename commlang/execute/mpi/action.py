"""Operations of MPI with all that can be decided before they start, to be done once or again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlang.execute.mpi.work import MpiWork, collect_abandoned
from commlang.records import entity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch
    from mpi4py import MPI


@entity
class Action:
    """One operation, bound to its tensors, whose memory `held` keeps.

    `now` does it, `later` starts it. `before` and `after` are the copies that go with it. For a
    `message` that is received, `expected` is its number of elements, of MPI's type `unit`.
    """

    name: str
    now: Callable[..., object]
    later: Callable[..., MPI.Request]
    arguments: tuple[Any, ...]
    before: Sequence[Callable[[], object]] = ()
    after: Sequence[Callable[[], object]] = ()
    results: Sequence[torch.Tensor] = ()
    held: Sequence[torch.Tensor] = ()
    message: tuple[int, MPI.Datatype] | None = None

    def run(self) -> None:
        """Do it and return when it is over."""
        if self.message is not None:  # whose length is told by the request
            self.start().wait()
            return
        for step in self.before:
            step()
        self.now(*self.arguments)
        for step in self.after:
            step()

    def start(self) -> MpiWork:
        """Begin it; the work that is returned finishes it."""
        collect_abandoned()
        for step in self.before:
            step()
        return MpiWork(self, self.later(*self.arguments))

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
