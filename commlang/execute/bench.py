"""Timed runs of many plans on ranks that are started once, as nccl-tests times collectives."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.execute.clock import settle_on
from commlang.execute.contract import check_contracts, needs_final
from commlang.execute.exchange import final_tensors
from commlang.execute.executor import Executor
from commlang.execute.fill import Filler
from commlang.execute.session import device_of_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlang.execute.rank import RankContext
    from commlang.execute.settings import BenchSettings
    from commlang.execute.world import World
    from commlang.plan import Plan

_dist: Any = dist  # whose functions have no complete types


@dataclass(slots=True)
class Sample:
    """What one rank measured of one plan.

    `seconds` are per run, one entry for each look at the clock; `wrong` counts elements that break
    a contract, None if the pattern has none or nobody asked.
    """

    seconds: list[float]
    wrong: int | None


@dataclass(slots=True)
class Bench:
    """All samples, by plan and rank, on what; empty on ranks other than 0."""

    backend: str
    device: str
    torch: str
    samples: list[list[Sample]]


def bench(context: RankContext, plans: Sequence[Plan], settings: BenchSettings) -> Bench:
    """Run every plan on this rank, one after the other; `context.position` is the plan's number.

    Each plan's first run is on fresh data, and checked if that is asked for; the others go on with
    what it leaves.
    """
    device = device_of_ranks(settings, context.info.local_world_size or 1)
    with context.join(backend=settings.backend, device=device) as world:
        found: list[Sample] = []
        for number, plan in enumerate(plans):
            base = (number + 1) << 32

            def progress(base: int = base) -> None:
                context.position[0] = max(int(context.position[0]) + 1, base)

            found += [_sample(plan, settings, world, progress) for _ in range(settings.cycles)]
        gathered: list[Any] | None = [None] * world.world_size if world.rank == 0 else None
        dist.gather_object(found, gathered)
        by_plan = [list(entry) for entry in zip(*(gathered or []), strict=True)]
        return Bench(world.backend, str(world.device), torch.__version__, by_plan)


def _sample(
    plan: Plan, settings: BenchSettings, world: World, progress: Callable[[], None]
) -> Sample:
    progress()
    data = Filler(plan, 0, world.device)
    tensors = data.tensors(world.rank)
    settle = settle_on(world.device)
    patience = timedelta(seconds=settings.timeout)
    with Executor(plan, device=world.device, stand_in=True, timeout=patience) as executor:
        executor.run(**tensors)
        progress()
        wrong = _wrong(plan, data, tensors, world) if settings.check else None
        seconds: list[float] = []
        for turn in range(settings.warmup + settings.iterations):
            progress()
            settle()
            _dist.barrier(executor.group)
            start = time.perf_counter()
            for _ in range(settings.aggregate):
                executor.run()
            settle()
            if turn >= settings.warmup:
                seconds.append((time.perf_counter() - start) / settings.aggregate)
    return Sample(seconds, wrong)


def _wrong(plan: Plan, data: Filler, tensors: dict[str, torch.Tensor], world: World) -> int | None:
    """How many elements break a contract on this rank."""
    final = final_tensors(tensors, needs_final(plan.definition), dist.group.WORLD)
    results = check_contracts(plan, world.rank, data.initial, final)
    if not results:
        return None
    return sum(result.failure.wrong for result in results if result.failure is not None)
