"""Ping-pong, one collective and local work on real ranks, for the figures of a machine."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.calibrate.model import (
    ADD,
    ALL_REDUCE,
    ALONE,
    BOTH,
    CARS,
    COPY,
    ISSUE,
    PAIRS,
    TRAIN,
    TRIPS,
)
from commlang.execute.allocate import flat
from commlang.execute.clock import settle_on
from commlang.execute.session import device_of_ranks, topology_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlang.execute.rank import RankContext
    from commlang.execute.settings import Settings
    from commlang.execute.topology import Topology
    from commlang.execute.world import World

_dist: Any = dist  # whose functions have no complete types


@dataclass(slots=True)
class Measured:
    """What was measured, by (probe, bytes): one entry per round, of the slowest rank, in seconds.

    `seconds` is empty on ranks other than 0.
    """

    backend: str
    device: str
    torch: str
    world: int
    seconds: dict[tuple[str, int], list[float]]
    topology: Topology | None = None


def calibrate(context: RankContext, sizes: Sequence[int], settings: Settings) -> Measured:
    """Time every probe at every size `settings.iterations` times, each time in another order.

    `context.position` counts probes. Data are zeros, which stay what they are in any sum.
    """
    device = device_of_ranks(settings, context.info.local_world_size or 1)
    with context.join(backend=settings.backend, device=device) as world:
        jobs = [(name, size) for size in sizes for name in _names(world)]
        probes = {size: _Probes(world, size) for size in sizes}
        order, mine = random.Random(0), {job: list[float]() for job in jobs}
        for number in range(settings.warmup + settings.iterations):
            order.shuffle(jobs)
            for name, size in jobs:
                context.position[0] = int(context.position[0]) + 1
                taken = probes[size].time(name)
                if number >= settings.warmup:
                    mine[name, size].append(taken)
                    issued = probes[size].issued
                    if name == BOTH and issued is not None:
                        mine.setdefault((ISSUE, size), []).append(issued)
        found = _slowest(mine, world)
        return Measured(
            world.backend,
            str(world.device),
            torch.__version__,
            world.world_size,
            found,
            topology_of(world),
        )


def _names(world: World) -> list[str]:
    alone = [ALONE] if world.world_size > 3 else []
    return [*alone, PAIRS, BOTH, TRAIN, ALL_REDUCE, COPY, ADD]


def _slowest(mine: dict[tuple[str, int], list[float]], world: World) -> Any:
    """Per probe and round the time of the slowest rank, on rank 0."""
    gathered: list[Any] | None = [None] * world.world_size if world.rank == 0 else None
    _dist.gather_object(mine, gathered)
    ranks = gathered or []
    jobs = sorted({job for rank in ranks for job in rank})
    return {
        job: [max(turn) for turn in zip(*(r[job] for r in ranks if job in r), strict=True)]
        for job in jobs
    }


class _Probes:
    """The probes of one size in bytes, on one rank."""

    def __init__(self, world: World, size: int) -> None:
        self._settle = settle_on(world.device)
        # Written to, since memory that the kernel knows to be zeros is all in one page.
        self._sent, self._got = (
            flat(torch.empty, max(size // 4, 1), torch.float32, world.device).zero_()
            for _ in range(2)
        )
        self._rank = world.rank
        self._peer = world.rank ^ 1
        self.issued: float | None = None
        self._probes: dict[str, Callable[[], object]] = {
            ALONE: lambda: self._ping_pong() if self._rank < 2 else None,
            PAIRS: self._ping_pong if self._peer < world.world_size else lambda: None,
            BOTH: self._both if self._peer < world.world_size else lambda: None,
            TRAIN: self._train if self._peer < world.world_size else lambda: None,
            ALL_REDUCE: lambda: _dist.all_reduce(self._got),
            COPY: lambda: self._got.copy_(self._sent),
            ADD: lambda: self._got.add_(self._sent),
        }

    def time(self, name: str) -> float:
        """Seconds that a probe takes, from when all ranks have come to it.

        It runs once before, so that its data are in the caches, as in patterns that run repeatedly.
        """
        probe = self._probes[name]
        probe()
        _dist.barrier()
        self._settle()
        start = time.perf_counter()
        probe()
        self._settle()
        return time.perf_counter() - start

    def _ping_pong(self) -> None:
        """There and back: messages one after the other."""
        for _ in range(TRIPS):
            if self._rank % 2:
                _dist.recv(self._got, self._peer)
                _dist.send(self._sent, self._peer)
            else:
                _dist.send(self._sent, self._peer)
                _dist.recv(self._got, self._peer)

    def _both(self) -> None:
        """There and back at once."""
        start = time.perf_counter()
        sent = _dist.isend(self._sent, self._peer)
        self.issued = time.perf_counter() - start
        got = _dist.irecv(self._got, self._peer)
        sent.wait()
        got.wait()

    def _train(self) -> None:
        """Some messages there and back, all at once."""
        works = [_dist.isend(self._sent, self._peer) for _ in range(CARS)]
        works += [_dist.irecv(self._got, self._peer) for _ in range(CARS)]
        for work in works:
            work.wait()
