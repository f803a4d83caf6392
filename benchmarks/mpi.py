"""all_reduce over MPI against gloo, on the same ranks in turn, from 4 bytes to 1 MiB.

    python benchmarks/mpi.py > benchmarks/mpi.txt

Columns are medians in µs per call: gloo and the backend over mpi4py by `dist.all_reduce`, the same
as a plan's executor calls it, and mpi4py alone. `ratio` is gloo's median over that of the plan's,
`public` over that of `dist.all_reduce`. The exit code is 1 if a `ratio` is below 8.
"""

from __future__ import annotations

import gc
import os
import platform
import random
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.execute.mpi.launch import launch_mpi
from commlang.execute.options import LaunchOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.execute.rank import RankContext

RANKS = 4
SIZES = (4, 64, 1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20)
ROUNDS = 12
CALLS = 40
TARGET = 8.0
WAYS = ("gloo", "dist", "plan", "mpi4py")

_dist: Any = dist  # torch's collectives have no complete types


def ways(size: int, gloo: Any) -> dict[str, Callable[[], object]]:
    """One call of each way, on tensors of zeros, whose sums stay what they are."""
    from mpi4py import MPI

    from commlang.execute.calls import calls_on

    tensor = torch.zeros(size // 4)
    array = torch.zeros(size // 4).numpy()
    assert dist.group.WORLD is not None
    calls = calls_on(dist.group.WORLD, all_wait=True)
    call = calls.collective("all_reduce", tensor, op=dist.ReduceOp.SUM)
    return {
        "gloo": lambda: _dist.all_reduce(tensor, group=gloo),
        "dist": lambda: _dist.all_reduce(tensor),
        "plan": call.run,
        "mpi4py": lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, array),
    }


def work(context: RankContext) -> list[list[float]]:
    """Per size, the median time of each way in µs, as this rank sees it."""
    torch.set_num_threads(1)
    with context.join(backend="mpi"):
        gloo = _dist.new_group(backend="gloo")
        return [medians(ways(size, gloo), context) for size in SIZES]


def medians(calls: dict[str, Callable[[], object]], context: RankContext) -> list[float]:
    """All ways in turn, in an order that is new in each round and the same on all ranks."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    order = random.Random(len(WAYS))
    gc.disable()
    for _ in range(ROUNDS):
        context.position[0] += 1
        for way in order.sample(WAYS, len(WAYS)):
            call = calls[way]
            for _ in range(5):  # the first ones find the caches full of another way
                call()
            for _ in range(CALLS):
                start = time.perf_counter()
                call()
                times[way].append(time.perf_counter() - start)
    gc.enable()
    return [statistics.median(times[way]) * 1e6 for way in WAYS]


def main() -> None:
    """Measure and print the table."""
    ranks = launch_mpi(work, (), LaunchOptions(nproc_per_node=RANKS))
    print(f"# torch {torch.__version__}, Python {platform.python_version()}, {os.cpu_count()} CPUs")
    print(f"# all_reduce, {RANKS} ranks, µs, medians of {ROUNDS} rounds of {CALLS} calls, rank 0")
    print("  ".join(f"{name:>8}" for name in ("bytes", *WAYS, "ratio", "public")))
    late: list[int] = []
    for size, (gloo, public, plan, bare) in zip(SIZES, ranks[0], strict=True):
        times = "  ".join(f"{value:8.1f}" for value in (gloo, public, plan, bare))
        print(f"{size:8}  {times}  {gloo / plan:8.1f}  {gloo / public:8.1f}")
        if gloo / plan < TARGET:
            late.append(size)
    print(f"# below {TARGET:g} times gloo: {late or 'none'}")
    sys.exit(bool(late))


if __name__ == "__main__":
    # Ranks find these functions by the module's name, which a script has not.
    from benchmarks import mpi

    mpi.main()
