"""Small collectives of one kind as one, on a buffer that holds the data of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from commlang.execute.allocate import flat
from commlang.execute.collectives import bind_tensor
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch.distributed as dist

    from commlang.execute.memory import Memory
    from commlang.program import Program

_torch: Any = torch  # whose functions on lists have no types


class Shared:
    """One work for several operations; whoever waits first unpacks for all."""

    def __init__(self, work: Any, unpack: Callable[[], None]) -> None:
        self._work = work
        self._unpack: Callable[[], None] | None = unpack

    def wait(self) -> None:
        """Wait for the communication, and see that the data are where they belong."""
        if self._unpack is not None:
            self._work.wait()
            unpack, self._unpack = self._unpack, None
            unpack()


def bind_bucket(
    program: Program, rows: Sequence[int], memory: Memory, group: dist.ProcessGroup, backend: str
) -> Callable[[], Shared]:
    """A function that starts the all_reduces or broadcasts of these rows as one.

    Their buffer is made here, once; until the work is waited for, nobody may start them again.
    """
    site, row = program.site_of(rows[0]), rows[0]
    views = [view for each in rows for view in memory.views(each)]
    sizes = [view.numel() for view in views]
    # Not in inference mode, else a later run outside that mode could not write it.
    with torch.inference_mode(False):
        buffer = flat(torch.empty, sum(sizes), views[0].dtype, views[0].device)
    parts = _torch.split(buffer, sizes)
    pieces = [part.view(view.shape) for part, view in zip(parts, views, strict=True)]
    rooted = site.kind is Kind.BROADCAST
    sends = not rooted or program.peer[row] == program.rank[row]
    start = bind_tensor(program, row, buffer, group, backend).start

    def unpack() -> None:
        if not (rooted and sends):
            _torch._foreach_copy_(views, pieces)

    def issue() -> Shared:
        if sends:
            _torch._foreach_copy_(pieces, views)
        return Shared(start(), unpack)

    return issue
