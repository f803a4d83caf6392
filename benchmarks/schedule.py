"""What schedules save on gloo: many all_reduces by hand, as written, and as they overlap.

    python benchmarks/schedule.py [--turns N]

The three ways run in turn, in random order, on the same ranks; times are of whole runs on the
slowest rank, in milliseconds.
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from statistics import quantiles
from typing import Any

CASES = ((2, 100, 256), (2, 8, 16 << 10), (4, 100, 256), (4, 8, 16 << 10), (4, 8, 256 << 10))
"""World, all_reduces and float32 elements of each."""
TEXT = """\
pattern many(x: float32[k, n], k: int, n: int):
    for i in range(k):
        all_reduce(x[i])
"""


def measure(context: Any, cases: tuple[tuple[int, int, int], ...], turns: int) -> list[Any]:
    """On every rank: the runs of each case, by way, in seconds on the slowest rank."""
    import torch
    import torch.distributed as dist

    import commlang

    found: list[Any] = []
    with context.join(backend="gloo", device="cpu") as world:
        for _, k, n in cases:
            x = torch.ones(k, n)
            plans = [
                commlang.loads(TEXT, "many").plan(
                    world=world.world_size, k=k, n=n, schedule=schedule
                )
                for schedule in ("program", "overlap")
            ]
            with commlang.Executor(plans[0]) as one, commlang.Executor(plans[1]) as other:

                def by_hand(x: Any = x) -> None:
                    for row in x:
                        dist.all_reduce(row)

                ways = {
                    "by hand": by_hand,
                    "as written": lambda one=one, x=x: one.run(x=x),
                    "overlap": lambda other=other, x=x: other.run(x=x),
                }
                found.append(_turns(ways, turns, context))
    return found


def _turns(ways: dict[str, Any], turns: int, context: Any) -> dict[str, list[float]]:
    import torch
    import torch.distributed as dist

    order = random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(turns + 1):
        for name in order.sample(list(ways), len(ways)):
            context.position[0] += 1
            dist.barrier()
            start = time.perf_counter()
            ways[name]()
            took = torch.tensor(time.perf_counter() - start)
            dist.all_reduce(took, op=dist.ReduceOp.MAX)
            times[name].append(took.item())
    return {name: seconds[1:] for name, seconds in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=40)
    turns = parser.parse_args().turns
    from commlang.execute.launch import launch
    from commlang.execute.options import LaunchOptions

    print(f"{platform.platform()}, {turns} turns, ms: p10 / p50 / p90 of whole runs")
    print(f"{'ranks':>5} {'calls':>5} {'each':>8}  way")
    for world in sorted({case[0] for case in CASES}):
        cases = tuple(case for case in CASES if case[0] == world)
        results = launch(measure, (cases, turns), LaunchOptions(nproc_per_node=world))
        for (_, k, n), times in zip(cases, results[0], strict=True):
            for name, seconds in times.items():
                tenths = [1e3 * t for t in quantiles(seconds, n=10)]
                shown = " / ".join(f"{tenths[i]:.2f}" for i in (0, 4, 8))
                print(f"{world:>5} {k:>5} {n // 256:>4} KiB  {name:<12} {shown}")


if __name__ == "__main__":
    main()
