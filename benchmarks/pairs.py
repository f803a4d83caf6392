"""Plans and the same calls by hand on gloo, in pairs: what each costs in CPU time, and in time.

    python benchmarks/pairs.py > benchmarks/pairs.txt

A turn runs an operation by hand, by hand once more and by a plan (`Executor.run`, with its checks),
in random order, the same on all ranks. So each turn is a pair of plan and hand and, beside it, a
pair of hand and hand: the A/A series shows what differs with nothing different. CPU time is that of
all threads of all ranks; with more ranks than cores, the wall time says little. Intervals are those
of the median, from the signs (scipy's quantile test); a plan is worse where its interval lies
above that of A/A. Sizes are those of an operation's larger side.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import random
import sys
import time
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WORLDS = (2, 4, 8)
SIZES = (4, 256, 16 << 10, 1 << 20, 64 << 20)
LARGE = 1 << 20
"""Bytes above which a case has fewer pairs, if its time would run out."""
FEWEST = 10
CONFIDENCE = 0.95
WAYS = ("hand", "again", "plan")

TEXTS = {
    "all_reduce": "pattern f(x: float32[n], n: int):\n    all_reduce(x)\n",
    "all_gather_into_tensor": (
        "pattern f(z: float32[n * world], x: float32[n], n: int):\n"
        "    all_gather_into_tensor(z, x)\n"
    ),
    "send, recv": (
        "pattern f(x: float32[n], y: float32[n], n: int):\n"
        "    parallel:\n"
        "        send(x, dst=ranks.next)\n"
        "        recv(y, src=ranks.prev)\n"
    ),
}

Samples = dict[str, list[tuple[float, float]]]
"""For each way the CPU and wall seconds of its runs on one rank."""


@dataclass(frozen=True)
class Case:
    """An operation and its size in bytes."""

    operation: str
    size: int

    def elements(self, world: int) -> int:
        """The `n` of its text; at least 1, so that the smallest gather is larger than asked."""
        parts = world if self.operation == "all_gather_into_tensor" else 1
        return max(1, self.size // 4 // parts)


def measure(
    context: Any, cases: Sequence[Case], pairs: int, seconds: float
) -> list[list[Samples]] | None:
    """What every rank measured, by case and rank; None on ranks other than 0."""
    import torch.distributed as dist

    with context.join(backend="gloo", device="cpu") as world:
        found = [_measure(context, case, world.world_size, pairs, seconds) for case in cases]
        gathered: Any = [None] * world.world_size if world.rank == 0 else None
        dist.gather_object(found, gathered)
    return [list(ranks) for ranks in zip(*gathered, strict=True)] if gathered else None


def _measure(context: Any, case: Case, world: int, pairs: int, seconds: float) -> Samples:
    import commlang

    n = case.elements(world)
    plan = commlang.loads(TEXTS[case.operation], "f").plan(world=world, n=n)
    tensors = _tensors(case.operation, n, world)
    with commlang.Executor(plan) as executor:
        hand = _by_hand(case.operation, tensors)
        ways = {"hand": hand, "again": hand, "plan": lambda: executor.run(**tensors)}
        turns = _turns(context, ways, 3)
        if case.size > LARGE:
            pairs = _affordable(turns, pairs, seconds)
        return _turns(context, ways, pairs)


def _tensors(operation: str, n: int, world: int) -> dict[str, Any]:
    """Zeros, which sums leave as they are."""
    import torch

    names = {"all_reduce": "x", "all_gather_into_tensor": "zx", "send, recv": "xy"}[operation]
    return {name: torch.zeros(n * world if name == "z" else n) for name in names}


def _by_hand(operation: str, tensors: dict[str, Any]) -> Callable[[], Any]:
    import torch.distributed as dist

    calls: Any = dist
    if operation == "all_reduce":
        return lambda: calls.all_reduce(tensors["x"])
    if operation == "all_gather_into_tensor":
        return lambda: calls.all_gather_single(tensors["z"], tensors["x"])
    rank, size = dist.get_rank(), dist.get_world_size()

    def exchange() -> None:
        messages = [
            dist.P2POp(dist.isend, tensors["x"], (rank + 1) % size),
            dist.P2POp(dist.irecv, tensors["y"], (rank - 1) % size),
        ]
        for work in dist.batch_isend_irecv(messages):
            work.wait()

    return exchange


def _affordable(turns: Samples, pairs: int, seconds: float) -> int:
    """How many turns fit in the time, the same on all ranks."""
    import torch
    import torch.distributed as dist

    one = sum(median(wall for _, wall in turns[way]) for way in WAYS)
    slowest = torch.tensor(one)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)  # pyright: ignore[reportUnknownMemberType]
    return min(pairs, max(FEWEST, int(seconds / slowest.item())))


def _turns(context: Any, ways: dict[str, Callable[[], Any]], turns: int) -> Samples:
    import torch.distributed as dist

    order = random.Random(turns)
    found: Samples = {way: [] for way in WAYS}
    gc.disable()
    dist.barrier()  # pyright: ignore[reportUnknownMemberType]
    for _ in range(turns):
        for way in order.sample(WAYS, len(WAYS)):
            context.position[0] += 1
            cpu, wall = time.process_time(), time.perf_counter()
            ways[way]()
            found[way].append((time.process_time() - cpu, time.perf_counter() - wall))
    gc.enable()
    return found


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """The confidence interval of the median of independent ratios."""
    from scipy.stats import quantile_test

    found: Any = quantile_test(ratios, q=1.0, p=0.5).confidence_interval(CONFIDENCE)
    return float(found.low), float(found.high)


@dataclass(frozen=True)
class Verdict:
    """A case over all ranks: ratios of CPU time as (median, low, high), and wall seconds."""

    pairs: int
    cpu: float
    plan: tuple[float, float, float]
    alike: tuple[float, float, float]
    walls: dict[str, list[float]]

    @property
    def word(self) -> str:
        """How the plan's interval lies to that of A/A."""
        if self.plan[1] > self.alike[2]:
            return "worse"
        return "better" if self.plan[2] < self.alike[1] else "alike"


def judge(ranks: Sequence[Samples]) -> Verdict:
    """Add up the CPU time of all ranks, and take the slowest rank's wall time."""
    cpu = {w: [sum(c for c, _ in one) for one in zip(*_of(ranks, w), strict=True)] for w in WAYS}
    wall = {w: [max(t for _, t in one) for one in zip(*_of(ranks, w), strict=True)] for w in WAYS}

    def ratio(way: str) -> tuple[float, float, float]:
        ratios = [a / b for a, b in zip(cpu[way], cpu["hand"], strict=True)]
        return median(ratios), *interval(ratios)

    walls = {way: [quantiles(wall[way], n=10)[i] for i in (0, 4, 8)] for way in ("hand", "plan")}
    each = median(cpu["hand"]) / len(ranks)
    return Verdict(len(cpu["hand"]), each, ratio("plan"), ratio("again"), walls)


def _of(ranks: Sequence[Samples], way: str) -> list[list[tuple[float, float]]]:
    return [samples[way] for samples in ranks]


def size_text(size: int) -> str:
    """`4 B`, `16 KiB`, `64 MiB`."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def row(world: int, case: Case, found: Verdict) -> str:
    """A line of the table."""
    ratios = "  ".join(
        f"{middle:5.3f} [{low:5.3f}, {high:5.3f}]"
        for middle, low, high in (found.plan, found.alike)
    )
    walls = "  ".join(" / ".join(f"{1e3 * t:.2f}" for t in w) for w in found.walls.values())
    return (
        f"{world:>5} {case.operation:<22} {size_text(case.size):>7} {found.pairs:>5} "
        f"{1e6 * found.cpu:>9.0f}  {ratios}  {found.word:<6}  {walls}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=4.0, help="for a case above 1 MiB")
    parser.add_argument("--worlds", type=int, nargs="+", default=WORLDS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    given = parser.parse_args()
    from importlib.metadata import version

    from commlang.execute.launch import launch
    from commlang.execute.options import LaunchOptions

    print(f"# {platform.platform()}, {os.cpu_count()} CPUs, torch {version('torch')}, gloo")
    print(f"# {given.pairs} pairs; above 1 MiB as many as fit in {given.seconds:g} s, "
          f"at least {FEWEST}")  # fmt: skip
    print("# CPU µs: by hand, of a rank; ratios of CPU time with intervals of "
          f"{CONFIDENCE:.0%}; wall ms p10 / p50 / p90: by hand, planned")  # fmt: skip
    print(f"{'ranks':>5} {'operation':<22} {'size':>7} {'pairs':>5} {'CPU µs':>9}  "
          f"{'plan / hand':<20}  {'hand / hand':<20}")  # fmt: skip
    cases = [Case(operation, size) for operation in TEXTS for size in given.sizes]
    words: list[str] = []
    for world in given.worlds:
        work = partial(measure, cases=cases, pairs=given.pairs, seconds=given.seconds)
        results = launch(work, (), LaunchOptions(nproc_per_node=world))
        for case, ranks in zip(cases, results[0], strict=True):
            found = judge(ranks)
            print(row(world, case, found), flush=True)
            words.append(found.word)
    told = ", ".join(f"{words.count(word)} {word}" for word in ("better", "alike", "worse"))
    print(f"# {told}")
    sys.exit("worse" in words)


if __name__ == "__main__":
    main()
