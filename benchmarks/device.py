"""On a machine with a GPU: plans on NCCL, and on gloo with CUDA tensors, checked and timed.

    python benchmarks/device.py > benchmarks/device.txt

As many ranks as there are GPUs on NCCL (one, where there is one: its calls, streams and events are
then real, the network is not), and two ranks on gloo that share the first GPU. Each result is
compared with that of the same operation on the CPU. Times are those of CUDA events, of a plan and
of the same call by hand in turn. Exits with 2 where there is no CUDA device, with 1 if a result is
wrong.
"""

from __future__ import annotations

import os
import platform
import random
import sys
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.cuda import nccl
from torch.multiprocessing.spawn import ProcessException, spawn

import commlang
from commlang.execute.topology import probe

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1 << 10, 1 << 20, 64 << 20)
"""Bytes of the tensor."""
TURNS = 40
WARMUP = 5
TEXT = """\
pattern many(x: float32[n], n: int):
    all_reduce(x, op={op})
"""
_dist: Any = dist


@dataclass(frozen=True)
class Row:
    """A line of the table; milliseconds p10, p50 and p90 of the slowest rank."""

    size: int
    right: bool
    hand: list[float]
    plan: list[float]

    def text(self, backend: str, ranks: int) -> str:
        times = "  ".join(" / ".join(f"{t:8.3f}" for t in way) for way in (self.hand, self.plan))
        ratio = self.plan[1] / self.hand[1] if self.hand[1] else float("nan")
        word = "right" if self.right else "WRONG"
        return f"{backend:<5} {ranks:>5} {self.size:>10}  {word}  {times}  {ratio:5.2f}"


def tenths(milliseconds: list[float]) -> list[float]:
    """p10, p50 and p90."""
    found = quantiles(milliseconds, n=10, method="inclusive")
    return [found[0], found[4], found[8]]


def start_values(rank: int, n: int) -> torch.Tensor:
    """Small integers, whose sums are exact in float32 and differ between ranks and places."""
    return (torch.arange(n) % 251 + rank).float()


def expected(ranks: int, n: int) -> torch.Tensor:
    """The sum over all ranks, on the CPU."""
    return torch.stack([start_values(rank, n) for rank in range(ranks)]).sum(0)


def timed(run: Callable[[], object]) -> float:
    """Milliseconds between an event before and an event after, on the current stream."""
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    run()
    after.record()
    after.synchronize()
    return before.elapsed_time(after)


def measure(size: int, device: torch.device) -> Row:
    """All ranks: check the plan's result, then take turns."""
    rank, ranks, n = dist.get_rank(), dist.get_world_size(), size // 4
    x = start_values(rank, n).to(device)
    checked = commlang.loads(TEXT.format(op="sum"), "many").plan(world=ranks, n=n)
    with commlang.Executor(checked, device=device) as executor:
        executor.run(x=x)
        right = torch.equal(x.cpu(), expected(ranks, n))
    plan = commlang.loads(TEXT.format(op="max"), "many").plan(world=ranks, n=n)
    with commlang.Executor(plan, device=device) as executor:
        ways: dict[str, Callable[[], object]] = {
            "hand": lambda: _dist.all_reduce(x, op=dist.ReduceOp.MAX),
            "plan": lambda: executor.run(x=x),
        }
        times = _turns(ways, device)
    agreed = torch.tensor(int(right), device=device)
    _dist.all_reduce(agreed, op=dist.ReduceOp.MIN)
    return Row(size, bool(agreed.item()), tenths(times["hand"]), tenths(times["plan"]))


def _turns(ways: dict[str, Callable[[], object]], device: torch.device) -> dict[str, list[float]]:
    """Milliseconds of the slowest rank; the order of turns is the same on all."""
    order = random.Random(0)
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(WARMUP + TURNS):
        for way in order.sample(list(ways), len(ways)):
            found[way].append(timed(ways[way]))
    for way, milliseconds in found.items():
        slowest = torch.tensor(milliseconds[WARMUP:], device=device)
        _dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        found[way] = slowest.tolist()
    return found


def rank_main(rank: int, ranks: int, backend: str, store: str) -> None:
    """One rank: NCCL has a device each, and its communicator at once; gloo shares the first."""
    device = torch.device("cuda", rank if backend == "nccl" else 0)
    torch.cuda.set_device(device)
    dist.init_process_group(
        backend,
        init_method=f"file://{store}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=60),
        device_id=device if backend == "nccl" else None,
    )
    try:
        rows = [measure(size, device) for size in SIZES]
    finally:
        dist.destroy_process_group()
    if rank == 0:
        for row in rows:
            print(row.text(backend, ranks), flush=True)
    if not all(row.right for row in rows):
        sys.exit(1)


def start(ranks: int, backend: str) -> bool:
    """Spawn the ranks, since CUDA cannot be forked; whether all of them ended well."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        try:
            spawn(rank_main, (ranks, backend, store), nprocs=ranks)
        except ProcessException as error:
            print(f"# {backend}, {ranks} ranks: {error}", flush=True)
            return False
    return True


def header() -> list[str]:
    """The versions, the machine, and how its devices are connected."""
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    found = probe(platform.node(), names)
    of_nccl = ".".join(map(str, nccl.version())) if dist.is_nccl_available() else "none"
    settings = [
        f"{n}={v}" for n, v in sorted(os.environ.items()) if n.startswith(("NCCL_", "CUDA_"))
    ]
    return [
        f"# torch {torch.__version__}, CUDA {torch.version.cuda}, NCCL {of_nccl}, "
        f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} CPUs",
        f"# GPUs: {', '.join(names)}",
        f"# links: {found.links or 'none told'}; InfiniBand: {found.infiniband or 'none told'}; "
        f"network: {found.network or 'none told'}",
        f"# environment: {' '.join(settings) or 'nothing set'}",
        f"# ms by CUDA events, p10 / p50 / p90 of {TURNS} turns, slowest rank; all_reduce",
        f"{'on':<5} {'ranks':>5} {'bytes':>10}  {'':<5}  {'by hand':<30}  {'planned':<30}  ratio",
    ]


def main() -> int:
    if not torch.cuda.is_available():
        print("there is no CUDA device that torch can use; run this on a machine with one")
        return 2
    print("\n".join(header()), flush=True)
    ran = [start(torch.cuda.device_count(), "nccl")] if dist.is_nccl_available() else []
    ran.append(start(2, "gloo"))
    return 0 if all(ran) else 1


if __name__ == "__main__":
    sys.exit(main())
