"""How far each rank's clock is ahead of rank 0's, by messages to and fro as NTP does it.

On Linux `time.perf_counter` is the kernel's monotonic clock, which all processes of a host share;
so one rank of each host asks, and nobody does where there is one host only.
"""

from __future__ import annotations

import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.execute.clock import settle_on
from commlang.trace.clocks import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.execute.world import World

ROUNDS = 32
"""Questions for each look at a clock, of which the one that was answered fastest counts."""
METHOD = (
    "time.perf_counter of each rank; one host's ranks share its clock. Between hosts the fastest "
    f"of {ROUNDS} ping-pongs with rank 0 before and after the timed runs, as NTP does it, and an "
    "even drift between them; the error is half of that ping-pong's time. On CUDA, times of events "
    "are put on the host's clock at the start of each run."
)

_dist: Any = dist  # whose functions have no complete types


def clock_name() -> str:
    """A name that processes share exactly if their `time.perf_counter` is one clock."""
    if platform.system() != "Linux":
        return platform.node()
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        # A container may have a time namespace, in which the clock starts elsewhere.
        return f"{boot} {Path('/proc/self/ns/time').readlink()}"
    return platform.node()


class Alignment:
    """Looks at the clocks whenever all ranks call `look`; `now` and `name` are this rank's."""

    def __init__(
        self,
        world: World,
        name: str | None = None,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        names: list[str] = [""] * world.world_size
        _dist.all_gather_object(names, clock_name() if name is None else name)
        self._world, self._now = world, now
        self._leader = names.index(names[world.rank])
        self._leaders = [rank for rank, told in enumerate(names) if names.index(told) == rank]
        self._seen: list[tuple[float, float, float]] = []

    def look(self) -> None:
        """Every rank learns how its clock stands to rank 0's at this moment."""
        if len(self._leaders) == 1:
            return
        rank, own = self._world.rank, (0.0, 0.0, 0.0)
        for leader in self._leaders[1:]:
            if rank == leader:
                own = self._ask()
            elif rank == 0:
                self._answer(leader)
        told: list[Any] = [None] * self._world.world_size
        _dist.all_gather_object(told, own)
        self._seen.append(told[self._leader])

    def clock(self) -> Clock:
        """What was seen so far."""
        if self._leader == 0:
            return Clock()
        at, offset, error = zip(*self._seen, strict=True)
        return Clock(at, offset, error)

    def _ask(self) -> tuple[float, float, float]:
        """(moment, seconds ahead of rank 0, error) of this rank's clock."""
        data, settle = self._message()
        best = (float("inf"), 0.0, 0.0)
        for _ in range(ROUNDS):
            sent = self._now()
            _dist.send(data, 0)
            _dist.recv(data, 0)
            settle()
            came = self._now()
            theirs = float(data[0])
            best = min(best, (came - sent, (sent + came) / 2, (sent + came) / 2 - theirs))
        trip, moment, ahead = best
        return moment, ahead, trip / 2

    def _answer(self, leader: int) -> None:
        data, settle = self._message()
        for _ in range(ROUNDS):
            _dist.recv(data, leader)
            settle()
            data[0] = self._now()
            _dist.send(data, leader)

    def _message(self) -> tuple[torch.Tensor, Callable[[], object]]:
        device = self._world.device
        return torch.zeros(1, dtype=torch.float64, device=device), settle_on(device)
