"""What each rank does in the tests of how operations are issued; as in `executor_work`."""

from __future__ import annotations

import os
import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

import commlang
from commlang.execute import calls
from commlang.execute.executor import Executor
from tests.execute.executor_work import joined, said

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_c10d: Any = torch._C._distributed_c10d  # pyright: ignore

EVERYTHING = """\
pattern main(x: float32[4], y: float32[4], z: float32[8], w: float32[8]):
    all_reduce(x, op=max)
    reduce(x, dst=0)
    broadcast(x, src=0)
    all_gather(z.chunks(world), x)
    reduce_scatter(y, z.chunks(world))
    all_gather_into_tensor(w, y)
    reduce_scatter_tensor(x, w)
    all_to_all(w.chunks(world), z.chunks(world))
    all_to_all_single(z, w)
    if rank == 0:
        scatter(y, z.chunks(world), src=0)
        gather(x, w.chunks(world), dst=0)
    else:
        scatter(y, src=0)
        gather(x, dst=0)
    h = async all_reduce(y)
    wait(h)
    barrier()
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
"""
MISSED = """\
pattern main(x: float32[4]):
    all_reduce(x)
    all_reduce(x)
"""


@contextmanager
def public_only() -> Generator[None]:
    """A torch whose process groups lack a method that direct calls need."""
    kept = calls._METHODS  # pyright: ignore[reportPrivateUsage]
    calls._METHODS = (*kept, "a_method_of_another_torch")  # pyright: ignore
    try:
        yield
    finally:
        calls._METHODS = kept  # pyright: ignore


def _values(size: int) -> list[list[float]]:
    plan = commlang.loads(EVERYTHING).plan(world=size)
    start = torch.arange(4.0) + 10 * dist.get_rank()
    with Executor(plan) as executor:
        found = executor.run(x=start.clone(), y=start.clone(), z=torch.ones(8), w=torch.ones(8))
    return [tensor.tolist() for _, tensor in sorted(found.items())]


def both_ways(rank: int, size: int, path: Path) -> tuple[bool, bool, Any, Any]:
    """Whether calls are direct, with and without all methods, and the values of both."""
    with joined(rank, size, path):
        group = dist.group.WORLD
        assert group is not None
        direct = type(calls.calls_on(group)) is calls.DirectCalls
        one = _values(size)
        with public_only():
            public = type(calls.calls_on(group)) is calls.PublicCalls
            return direct, public, one, _values(size)


def seen_by_tools(rank: int, size: int, path: Path) -> list[tuple[list[str], list[str]]]:
    """What Flight Recorder and the profiler see of direct calls, and of public ones."""
    os.environ["TORCH_FR_BUFFER_SIZE"] = "100"
    with joined(rank, size, path):
        direct = _seen(size, 0)
        with public_only():
            return [direct, _seen(size, len(direct[0]))]


def _seen(size: int, before: int) -> tuple[list[str], list[str]]:
    plan = commlang.loads(EVERYTHING).plan(world=size)
    with Executor(plan) as executor, profile(activities=[ProfilerActivity.CPU]) as profiled:
        executor.run()
    recorded = pickle.loads(_c10d._dump_fr_trace())["entries"]
    events: Any = profiled.key_averages()
    names = [entry["profiling_name"] for entry in recorded[before:]]
    return names, sorted({e.key for e in events if "c10d" in e.key or "gloo" in e.key})


def timed_out(rank: int, size: int, path: Path) -> str:
    """Rank 1 makes one all_reduce less than rank 0 expects."""
    with joined(rank, size, path, timeout=1.0):
        plan = commlang.loads(MISSED).plan(world=size)
        with Executor(plan) as executor:
            if rank == 0:
                return said(executor.run)
            dist.all_reduce(torch.zeros(4))
            executor._agreement = None  # pyright: ignore[reportPrivateUsage]
            return "left"


def debugged(rank: int, size: int, path: Path) -> str:
    """Under DETAIL, torch compares the calls; the ranks make different ones here."""
    _c10d.set_debug_level(_c10d.DebugLevel.DETAIL)
    with joined(rank, size, path, timeout=20.0):
        plan = commlang.loads(MISSED).plan(world=size)
        with Executor(plan) as executor:
            if rank == 0:
                return said(executor.run)
            try:
                dist.broadcast(torch.zeros(4), src=0)
            except RuntimeError as error:
                return str(error)
            return ""
