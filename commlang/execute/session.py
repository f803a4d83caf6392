"""One run of a plan from fill to verdict, on every rank; rank 0 collects what there is to tell."""

from __future__ import annotations

import importlib
import platform
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.errors import UsageError
from commlang.execute.align import Alignment
from commlang.execute.allocate import flat
from commlang.execute.contract import ContractResult, check_contracts, needs_final
from commlang.execute.exchange import final_tensors
from commlang.execute.executor import Executor
from commlang.execute.fill import Filler
from commlang.execute.measure import RankTimes, measure
from commlang.execute.shortage import allocating
from commlang.execute.story import AFTER, Story
from commlang.execute.topology import probe
from commlang.execute.world import choose_backend, choose_device
from commlang.trace.write import runs_to_keep

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.execute.rank import RankContext
    from commlang.execute.settings import Settings
    from commlang.execute.topology import Topology
    from commlang.execute.world import World
    from commlang.plan import Plan
    from commlang.trace.clocks import Clock


@dataclass(slots=True)
class RankResult:
    """What one rank found out; on CUDA, the first of a host also knows the host's topology."""

    rank: int
    host: str
    times: RankTimes
    contracts: list[ContractResult] = field(default_factory=list[ContractResult])
    clock: Clock | None = None
    topology: Topology | None = None


@dataclass(slots=True)
class Outcome:
    """The whole run, as rank 0 knows it; on other ranks `ranks` is empty."""

    ok: bool
    backend: str
    device: str
    torch: str
    ranks: list[RankResult]


def run_session(context: RankContext, plan: Plan, settings: Settings) -> Outcome:
    """Join, bind, run once and check every contract on the real data, then run again for time."""
    device = device_of_ranks(settings, context.info.local_world_size or 1)
    with context.join(backend=settings.backend, device=device) as world:
        context.follow(Story(plan).narrator)
        context.position[0] = AFTER
        externs = {name: load_callable(target) for name, target in settings.externs}
        # What may hang was refused before the ranks were started, or allowed.
        with Executor(
            plan, device=world.device, externs=externs, stand_in=True, allow_hazards=True
        ) as executor:
            position = executor.position = context.position
            result = _run(executor, plan, settings, world, position)
        result.topology = topology_of(world)
        return _collect(result, world)


def check_devices(settings: Settings, ranks: int) -> None:
    """Raise UsageError for a backend or a device that some of a node's `ranks` would not find."""
    choose_backend(settings.backend, choose_device(device_of_ranks(settings, ranks), ranks - 1))


def device_of_ranks(settings: Settings, ranks: int) -> str:
    """The device, where nobody asked for one: CUDA if all ranks of this node get one each."""
    if settings.device != "auto":
        return settings.device
    return "cuda" if settings.wants_cuda and torch.cuda.device_count() >= ranks else "cpu"


def _run(
    executor: Executor, plan: Plan, settings: Settings, world: World, position: memoryview
) -> RankResult:
    data = Filler(plan, settings.seed, world.device)

    def initial(rank: int, name: str) -> torch.Tensor:
        position[0] += 1  # making data takes a while, and is progress
        return data.initial(rank, name)

    entry = data.tensors(world.rank)
    tensors = {name: _copy(name, tensor) for name, tensor in entry.items()}
    executor.bind(**tensors)

    def refill() -> None:
        for name, tensor in tensors.items():
            tensor.copy_(entry[name])

    measure(executor, 1, refill, first=1, stepwise=True)
    final = final_tensors(tensors, needs_final(plan.definition), executor.group)
    contracts = check_contracts(plan, world.rank, initial, final, executor.externs)
    measure(executor, settings.warmup, refill, first=2, stepwise=True)
    result = _timed(executor, plan, settings, refill, world)
    result.contracts = contracts
    return result


def _timed(
    executor: Executor, plan: Plan, settings: Settings, refill: Callable[[], None], world: World
) -> RankResult:
    """The timed runs, with looks at the clocks before and after them if they are traced."""
    runs, first = settings.iterations, 2 + settings.warmup
    if settings.trace is None:
        times = measure(executor, runs, refill, first)
        return RankResult(world.rank, platform.node(), times)
    clocks = Alignment(world)
    clocks.look()
    times = measure(executor, runs, refill, first, keep=runs_to_keep(plan.events, runs))
    clocks.look()
    return RankResult(world.rank, platform.node(), times, clock=clocks.clock())


def _copy(name: str, tensor: torch.Tensor) -> torch.Tensor:
    with allocating(f"tensor `{name}`", tensor.nbytes):
        made = flat(torch.empty, tensor.numel(), tensor.dtype, tensor.device)
        return made.view(tensor.shape).copy_(tensor)


def topology_of(world: World) -> Topology | None:
    """What this rank's host says of its devices, if the run is on CUDA and no other rank asks."""
    if world.device.type != "cuda" or world.local_rank != 0:
        return None
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return probe(platform.node(), names)


def _collect(result: RankResult, world: World) -> Outcome:
    """Gather the results on rank 0, and let all ranks know whether all contracts held."""
    held = torch.tensor(int(all(c.ok for c in result.contracts)), device=world.device)
    dist.all_reduce(held, op=dist.ReduceOp.MIN)  # pyright: ignore[reportUnknownMemberType]
    gathered: list[Any] | None = [None] * world.world_size if world.rank == 0 else None
    dist.gather_object(result, gathered)
    ranks: list[RankResult] = list(gathered or [])
    return Outcome(bool(held), world.backend, str(world.device), torch.__version__, ranks)


def load_callable(target: str) -> Callable[..., Any]:
    """The callable that `package.module:name` names; raises UsageError if there is none."""
    module, _, name = target.partition(":")
    if not module or not name:
        raise UsageError(f"--extern NAME={target}: write NAME=package.module:function")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"--extern: cannot load {target}: {error}") from None
    if not callable(found):
        raise UsageError(f"--extern: {target} is not callable")
    return found
