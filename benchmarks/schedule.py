"""What schedules save on gloo: by hand, as written, and as they overlap.

    python benchmarks/schedule.py [--turns N]

Many all_reduces, which are coalesced, and large data that are passed on, which are split. The ways
run in turn, in random order, on the same ranks; times are of whole runs on the slowest rank, in
milliseconds.
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from contextlib import ExitStack
from statistics import quantiles
from typing import Any
from unittest import mock

import commlang

CASES: tuple[tuple[int, str, dict[str, Any]], ...] = (
    *((world, "many", {"k": 100, "n": 256}) for world in (2, 4)),
    *((world, "many", {"k": 8, "n": 16 << 10}) for world in (2, 4)),
    (4, "many", {"k": 8, "n": 256 << 10}),
    *((4, name, {"n": n << 20}) for name in ("chain", "levels") for n in (1, 4, 16)),
)
"""World, pattern and parameters; `n` are float32 elements."""
TEXT = """\
pattern many(x: float32[k, n], k: int, n: int):
    for i in range(k):
        all_reduce(x[i])

pattern chain(x: float32[n], n: int):
    if rank > 0:
        recv(x, src=rank - 1)
    if rank < world - 1:
        send(x, dst=rank + 1)

pattern levels(x: float32[n], n: int):
    mesh node = 2, local = world // 2
    reduce(x, dst=local[0], group=local)
    if local.index == 0:
        all_reduce(x, group=node)
    broadcast(x, src=local[0], group=local)
"""


def measure(context: Any, cases: tuple[Any, ...], turns: int) -> list[Any]:
    """On every rank: the runs of each case, by way, in seconds on the slowest rank."""
    import torch

    found: list[Any] = []
    with context.join(backend="gloo", device="cpu") as world, ExitStack() as stack:
        for _, name, values in cases:
            x = torch.ones(values.get("k", 1), values["n"]).squeeze(0)
            ways: dict[str, Any] = {}
            if name == "many":
                ways["by hand"] = lambda x=x: _by_hand(x)
            for way, plan in _plans(name, world.world_size, values).items():
                executor = stack.enter_context(commlang.Executor(plan))
                ways[way] = lambda executor=executor, x=x: executor.run(x=x)
            found.append(_turns(ways, turns, context))
    return found


def _plans(name: str, world: int, values: dict[str, Any]) -> dict[str, commlang.Plan]:
    pattern = commlang.loads(TEXT, name)
    plans = {"as written": pattern.plan(world, schedule="program", **values)}
    if name != "many":
        with mock.patch("commlang.schedule.chunks.PIECE", 1 << 40):
            plans["in one piece"] = pattern.plan(world, **values)
    return {**plans, "overlap": pattern.plan(world, **values)}


def _by_hand(x: Any) -> None:
    import torch.distributed as dist

    for row in x:
        dist.all_reduce(row)


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
    print(f"{'ranks':>5} {'pattern':<8} {'calls':>5} {'each':>9}  way")
    for world in sorted({case[0] for case in CASES}):
        cases = tuple(case for case in CASES if case[0] == world)
        results = launch(measure, (cases, turns), LaunchOptions(nproc_per_node=world))
        for (_, pattern, values), times in zip(cases, results[0], strict=True):
            for name, seconds in times.items():
                tenths = [1e3 * t for t in quantiles(seconds, n=10)]
                shown = " / ".join(f"{tenths[i]:.2f}" for i in (0, 4, 8))
                case = f"{world:>5} {pattern:<8} {values.get('k', 1):>5} {values['n'] >> 8:>5} KiB"
                print(f"{case}  {name:<12} {shown}")


if __name__ == "__main__":
    main()
