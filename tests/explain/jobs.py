"""Jobs that hang, each on real gloo ranks whose dumps are taken while they hang.

Each function is what every rank does. `JOBS` says how many operations a rank has issued then, how
many of them from the first on are over, and how many are not (None: whatever torch makes of it), so
that a dump is taken when the job stands still, however slow the machine is.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist

import commlang

_c10d: Any = torch._C._distributed_c10d  # pyright: ignore
_dist: Any = dist
Expected = Callable[[int], tuple[int, int, int | None]]
WORLD = 4
PATTERN = Path(__file__).parent / "golden" / "scheduled.cl"


def _data() -> torch.Tensor:
    return torch.zeros(4)


def busy() -> None:
    """A rank's own work, without an end."""
    threading.Event().wait()


def missing(rank: int) -> None:
    x = _data()
    _dist.all_reduce(x)
    _dist.broadcast(x, src=0)
    if rank == 2:
        busy()
    _dist.all_reduce(x)


def chained(rank: int) -> None:
    """Rank 0 works, rank 1 waits for it in a group of both, the others wait for these two."""
    x = _data()
    group = _dist.new_group([0, 1], group_desc="commlang:step.pair")
    if rank == 0:
        busy()
    if rank == 1:
        _dist.all_reduce(x, group=group)
    _dist.all_reduce(x)


def other_order(rank: int) -> None:
    x, y = _data(), _data()
    one, other = _dist.new_group([0, 1]), _dist.new_group([0, 1])
    if rank < 2:
        _dist.all_reduce(x, group=(one, other)[rank])
        _dist.all_reduce(y, group=(other, one)[rank])
    _dist.barrier()


def other_kind(rank: int) -> None:
    x = _data()
    _dist.all_reduce(x)
    if rank == 1:
        _dist.broadcast(x, src=1)
    else:
        _dist.all_reduce(x)
    busy()


def swapped(rank: int) -> None:
    x = _data()
    calls = [lambda: _dist.all_reduce(x, async_op=True), lambda: _dist.barrier(async_op=True)]
    for call in reversed(calls) if rank == 3 else calls:
        call()
    busy()


def other_size(rank: int) -> None:
    # gloo's own threads end a process that is sent more than it expects.
    _dist.broadcast(torch.zeros(8 if rank == 3 else 4), src=0, async_op=True)
    busy()


def other_dtype(rank: int) -> None:
    dtype = torch.int32 if rank == 0 else torch.float32
    _dist.all_reduce(torch.zeros(4, dtype=dtype), async_op=True)
    busy()


def two_roots(rank: int) -> None:
    x, root = _data(), 1 if rank == 1 else 0
    _dist.gather(x, [_data() for _ in range(WORLD)] if rank == root else None, dst=root)
    busy()


def lone_recv(rank: int) -> None:
    """Rank 3 waits for a message that rank 2 never sends; gloo records no messages."""
    x = _data()
    _dist.all_reduce(x)
    if rank == 3:
        _dist.recv(x, src=2)
    _dist.all_reduce(x)


def long(rank: int) -> None:
    """More operations than are kept, in two steps of a pattern each."""
    x = _data()
    for step in range(20):
        if rank == 1 and step == 15:
            busy()
        _dist.all_reduce(x)
        _dist.broadcast(x, src=0)


def scheduled(rank: int) -> None:
    """A plan that makes calls one and splits others, which rank 2 runs once only."""
    plan = commlang.load(PATTERN).plan(world=WORLD)
    with commlang.Executor(plan) as executor:
        tensors = {"x": torch.zeros(8, 256), "y": torch.zeros(1 << 20)}
        executor.run(**tensors)
        if rank == 2:
            busy()
        executor.run(**tensors)


def well(rank: int) -> None:
    x = _data()
    _dist.all_reduce(x)
    _dist.barrier()
    del rank
    busy()


def timed_out(rank: int) -> None:
    """gloo gives up after a while, and says of what failed that it is over."""
    x = _data()
    _dist.all_reduce(x)
    if rank != 1:
        _dist.all_reduce(x)


def timed_out_leaf(rank: int) -> None:
    """The same of a broadcast, which ends early where it starts."""
    if rank != 1:
        _dist.broadcast(_data(), src=1)


JOBS: dict[Callable[[int], None], Expected] = {
    missing: lambda rank: (2, 2, 0) if rank == 2 else (3, 2, 1),
    chained: lambda rank: (0, 0, 0) if rank == 0 else (1, 0, 1),
    other_order: lambda rank: (1, 0, 1),
    other_kind: lambda rank: (2, 1, None),
    swapped: lambda rank: (2, 0, None),
    other_size: lambda rank: (1, 0, None),
    other_dtype: lambda rank: (1, 0, None),
    two_roots: lambda rank: (1, 0, None),
    lone_recv: lambda rank: (1, 1, 0) if rank >= 3 else (2, 1, 1),
    long: lambda rank: (30, 30, 0) if rank == 1 else (31, 30, 1),
    scheduled: lambda rank: ((10, 5, 3), (6, 3, 1), (5, 5, 0), (6, 3, 3))[rank],
    well: lambda rank: (2, 2, 0),
    timed_out: lambda rank: (1, 1, 0) if rank == 1 else (2, 2, 0),
    timed_out_leaf: lambda rank: (0, 0, 0) if rank == 1 else (1, 1, 0),
}
"""Every job, with what is waited for."""


def main(name: str, rank: int, folder: Path, as_json: bool) -> None:
    """One rank of a job: it ends when all dumps are taken."""
    job = next(job for job in JOBS if job.__name__ == name)
    os.environ["TORCH_FR_BUFFER_SIZE"] = "8" if job is long else "100"
    timeout = timedelta(seconds=1 if job in (timed_out, timed_out_leaf) else 100)
    # torch asks the compiler for frames of generated code, and importing that takes over a second.
    setattr(torch, "_inductor", SimpleNamespace())  # noqa: B010
    store = (folder / "store").as_uri()
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=WORLD, timeout=timeout)
    threading.Thread(target=_dump, args=(JOBS[job](rank), rank, folder, as_json)).start()
    try:
        job(rank)
    except RuntimeError:
        busy()
    busy()


def _dump(expected: tuple[int, int, int | None], rank: int, folder: Path, as_json: bool) -> None:
    while not _stands(*expected):
        time.sleep(0.01)
    _meet(folder / "ready", rank)
    dumps = folder / "dumps"
    dumps.mkdir(exist_ok=True)
    if as_json:
        (dumps / f"trace_{rank}.json").write_bytes(_c10d._dump_fr_trace_json())
    else:
        (dumps / f"nccl_trace_rank_{rank}").write_bytes(_c10d._dump_fr_trace())
    _meet(folder / "done", rank)  # what ends before would fail on the others
    os._exit(0)


def _meet(folder: Path, rank: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / str(rank)).touch()
    while len(list(folder.iterdir())) < WORLD:
        time.sleep(0.005)


def _stands(issued: int, over: int, pending: int | None) -> bool:
    dump = pickle.loads(_c10d._dump_fr_trace(includeStackTraces=False))
    found = dump["entries"]
    if (found[-1]["record_id"] + 1 if found else 0) != issued:
        return False
    if not all(entry["retired"] for entry in found if entry["record_id"] < over):
        return False
    return pending is None or sum(not entry["retired"] for entry in found) == pending
