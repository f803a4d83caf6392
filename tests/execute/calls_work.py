"""What each rank does in the tests of how operations are issued; as in `executor_work`."""

from __future__ import annotations

import os
import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

import commlang
from commlang.execute import calls
from commlang.execute.executor import Executor
from tests.execute.executor_work import joined, said

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

_dist: Any = dist
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
def public_only(**changed: Any) -> Generator[None]:
    """A torch whose process groups or options differ from what direct calls need."""
    changed = changed or {"_METHODS": calls._METHODS | {"a_method_of_another_torch": (1, "opts")}}  # pyright: ignore
    calls._has_surface.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        with mock.patch.multiple(calls, **changed):
            yield
    finally:
        calls._has_surface.cache_clear()  # pyright: ignore[reportPrivateUsage]


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


def seen_by_tools(rank: int, size: int, path: Path) -> dict[str, tuple[Any, list[str]]]:
    """What Flight Recorder and the profiler see of direct calls, of public ones, and by hand."""
    os.environ["TORCH_FR_BUFFER_SIZE"] = "100"
    with joined(rank, size, path):
        plan = commlang.loads(EVERYTHING).plan(world=size, schedule="program")
        found: dict[str, tuple[Any, list[str]]] = {}
        with Executor(plan) as executor:
            found["direct"] = _seen(executor.run)
            x, y, z, w = (executor.tensors[name] for name in "xyzw")
            found["by hand"] = _seen(lambda: _by_hand(rank, size, x, y, z, w))
        with public_only(), Executor(plan) as executor:
            found["public"] = _seen(executor.run)
        return found


FIELDS = ("profiling_name", "process_group", "is_p2p", "timeout_ms", "state",
          "input_sizes", "input_dtypes", "output_sizes", "output_dtypes")  # fmt: skip


def _seen(run: Callable[[], object]) -> tuple[Any, list[str]]:
    before = len(pickle.loads(_c10d._dump_fr_trace())["entries"])
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        run()
    recorded = pickle.loads(_c10d._dump_fr_trace())["entries"][before:]
    events: Any = profiled.key_averages()
    return [[entry[field] for field in FIELDS] for entry in recorded], [e.key for e in events]


def _by_hand(rank: int, size: int, x: Any, y: Any, z: Any, w: Any) -> None:
    """EVERYTHING, as a person writes it."""
    parts, others = list(z.chunk(size)), list(w.chunk(size))
    _dist.all_reduce(x, op=dist.ReduceOp.MAX)
    _dist.reduce(x, 0)
    _dist.broadcast(x, 0)
    _dist.all_gather(parts, x)
    _dist.reduce_scatter(y, parts)
    _dist.all_gather_single(w, y)
    _dist.reduce_scatter_single(x, w)
    _dist.all_to_all(others, parts)
    _dist.all_to_all_single(z, w)
    _dist.scatter(y, parts if rank == 0 else None, src=0)
    _dist.gather(x, others if rank == 0 else None, dst=0)
    _dist.all_reduce(y, async_op=True).wait()
    _dist.barrier()
    works = [_dist.isend(x, (rank + 1) % size), _dist.irecv(y, (rank - 1) % size)]
    for work in works:
        work.wait()


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


EXTERN = """\
extern model(x: update float32[4])

pattern main(x: float32[4]):
    model(x)
    all_reduce(x)
"""
LOCAL = """\
pattern main(x: float32[4], y: float32[4]):
    x -> y
    all_reduce(y)
"""


def gradients(rank: int, size: int, path: Path) -> list[Any]:
    """An extern may record gradients; a run records none, and counts what it writes."""
    trained: list[float] = []

    def model(x: torch.Tensor) -> None:
        weight = torch.tensor(2.0, requires_grad=True)
        loss = (weight * x.clone()).sum()
        loss.backward()
        assert weight.grad is not None
        trained.append(weight.grad.item())

    with joined(rank, size, path):
        with Executor(commlang.loads(EXTERN).plan(world=size), externs={"model": model}) as ex:
            ex.run(x=torch.ones(4))
        x, y = torch.ones(4, requires_grad=True), torch.zeros(4)
        version = y._version
        with Executor(commlang.loads(LOCAL).plan(world=size)) as ex:
            ex.run(x=x, y=y)
        assert y.grad_fn is None
        return [trained, y.tolist(), y._version > version, y.is_inference()]
