"""Patterns that do the same, timed against one another on ranks that are started once."""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.execute.executor import Executor
from commlang.execute.measure import settle_on
from commlang.execute.session import device_of_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlang.execute.rank import RankContext
    from commlang.execute.settings import TuneSettings
    from commlang.execute.world import World
    from commlang.plan import Plan

TRIAL = 6
"""After so many rounds, plans that are far behind are left out."""
HOPELESS = 3.0
"""How many times the fastest one's median is far behind."""

_dist: Any = dist  # whose functions have no complete types


@dataclass(slots=True)
class Timed:
    """On what it was measured, and `seconds[race][plan]`: one entry per round, of the slowest rank.

    On ranks other than 0 there are no seconds.
    """

    backend: str
    device: str
    torch: str
    seconds: list[list[list[float]]]


def tune(context: RankContext, races: Sequence[Sequence[Plan]], settings: TuneSettings) -> Timed:
    """Time the plans of each race in turn, in an order that is new in each round.

    `context.position` counts turns. Data are zeros, which stay what they are under any reduction.
    The first plan of a race takes part in all of its rounds, others until they are hopeless.
    """
    device = device_of_ranks(settings, context.info.local_world_size or 1)
    with context.join(backend=settings.backend, device=device) as world:
        order = random.Random(_agreed(torch.randint(1 << 31, (1,)), world))
        mine: list[list[list[float]]] = []
        for number, plans in enumerate(races):

            def progress(base: int = (number + 1) << 32) -> None:
                context.position[0] = max(int(context.position[0]) + 1, base)

            mine.append(_race(plans, settings, world, order, progress))
        gathered: list[Any] | None = [None] * world.world_size if world.rank == 0 else None
        dist.gather_object(mine, gathered)
        return Timed(world.backend, str(world.device), torch.__version__, _slowest(gathered or []))


def _agreed(drawn: torch.Tensor, world: World) -> int:
    """What rank 0 has drawn."""
    shared = drawn.to(world.device)
    _dist.broadcast(shared, 0)
    return int(shared)


def _race(
    plans: Sequence[Plan],
    settings: TuneSettings,
    world: World,
    order: random.Random,
    progress: Callable[[], None],
) -> list[list[float]]:
    patience = timedelta(seconds=settings.timeout)
    seconds: list[list[float]] = [[] for _ in plans]
    running, settle = list(range(len(plans))), settle_on(world.device)
    with contextlib.ExitStack() as stack:
        runs: list[Callable[[], object]] = []
        for plan in plans:
            progress()
            executor = Executor(plan, device=world.device, stand_in=True, timeout=patience)
            runs.append(stack.enter_context(executor).run)
        for turn in range(settings.rounds):
            if turn == TRIAL:
                running = _hopeful(seconds, world)
            for at in order.sample(running, len(running)):
                progress()
                seconds[at].append(_turn(runs[at], settings.calls, settle))
    return seconds


def _hopeful(seconds: Sequence[Sequence[float]], world: World) -> list[int]:
    """The first, and all that are not far slower than the fastest so far; ranks agree on it."""
    slowest: Any = torch.tensor(seconds, device=world.device)
    _dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    medians: list[float] = slowest.median(dim=1).values.tolist()
    return [at for at, m in enumerate(medians) if at == 0 or m <= HOPELESS * min(medians)]


def _turn(run: Callable[[], object], calls: int, settle: Callable[[], object]) -> float:
    """Seconds per call, after one that finds the caches full of another plan's data."""
    run()
    settle()
    _dist.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    settle()
    return (time.perf_counter() - start) / calls


def _slowest(ranks: Sequence[list[list[list[float]]]]) -> list[list[list[float]]]:
    """Of each turn the time of its slowest rank, by race and plan."""
    return [
        [[max(turn) for turn in zip(*plan, strict=True)] for plan in zip(*race, strict=True)]
        for race in zip(*ranks, strict=True)
    ]
