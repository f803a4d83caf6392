"""The part of `host.py` on the pattern library: each pattern against the same calls by hand."""

from __future__ import annotations

import gc
import random
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import torch.distributed as dist
from by_hand import ByHand
from torch.testing._internal.distributed.fake_pg import FakeStore

import commlang
from commlang.execute.fill import Filler

LIBRARY = Path(__file__).parents[1] / "patterns"
WORLD = 4
RANKS = (0, 3)
"""A root, and one that is none; a rank that has no part in a pattern is left out."""
ROUNDS = 41
ROUND_S = 5e-4
"""What a round should last, at least."""
SIZES = {"n": 48, "b": 2, "h": 24, "s": 24, "p": 48, "heads": 8, "d": 2, "micro": 4, "pieces": 4}
SIZES |= {"ny": 4, "nx": 4}


@dataclass(frozen=True)
class Cost:
    """Microseconds per action of a rank, the ratio, and that of two series by hand."""

    name: str
    rank: int
    actions: int
    hand: float
    plan: float
    ratio: float
    alike: float


def patterns() -> list[commlang.Pattern]:
    """The patterns of the library that others can use, by file."""
    return [commlang.load(path) for path in sorted(LIBRARY.rglob("*.cl"))]


def plan_of(pattern: commlang.Pattern) -> commlang.Plan:
    """A plan on small data, so that the data's own cost is small."""
    values: dict[str, Any] = {n: size for n, size in SIZES.items() if n in pattern.parameters}
    if "counts" in pattern.parameters:
        values["counts"] = [[1 + (s + d) % 3 for d in range(WORLD)] for s in range(WORLD)]
    return pattern.plan(world=WORLD, **values)


def nothing(*arguments: object) -> None:
    """The externs of every pattern."""


def externs_of(plan: commlang.Plan) -> dict[str, Any]:
    return {site.name: nothing for site in plan.program().sites if site.extern is not None}


def measure(name: str, plan: commlang.Plan, rank: int) -> Cost:
    """Both forms in turn, in random order, on the same tensors."""
    tensors = Filler(plan, 0, "cpu").tensors(rank)
    with commlang.Executor(plan, externs=externs_of(plan)) as executor:
        with mock.patch("time.sleep", nothing):  # the work of `compute`, as the steps are bound
            executor.run(**tensors)
            hand = ByHand(executor)

        def planned() -> None:
            executor.run(**tensors)

        ways = {"hand": hand.run, "again": hand.run, "plan": planned}
        repeats = max(1, int(ROUND_S / _seconds(planned, 3)))
        series: dict[str, list[float]] = {way: [] for way in ways}
        gc.disable()
        for _ in range(ROUNDS):
            for way in random.sample(list(ways), len(ways)):
                series[way].append(_seconds(ways[way], repeats))
        gc.enable()
        actions = len(executor.actions)
    per = {way: median(values) * 1e6 / actions for way, values in series.items()}
    ratios = [
        median(a / h for a, h in zip(series[way], series["hand"], strict=True))
        for way in ("plan", "again")
    ]
    return Cost(name, rank, actions, per["hand"], per["plan"], *ratios)


def _seconds(run: Any, repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - start) / repeats


def costs() -> list[Cost]:
    """Every pattern, on each of RANKS."""
    found: list[Cost] = []
    plans = [(Path(p.definition.module.source.path).stem, plan_of(p)) for p in patterns()]
    for rank in RANKS:
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=WORLD)
        found += [measure(name, plan, rank) for name, plan in plans if plan.actions(rank)]
        dist.destroy_process_group()
    return found


def report() -> Cost:
    """Print the table; the pattern with the highest ratio."""
    print("# the library: `Executor.run` against the same calls of torch.distributed")
    print(f"# {WORLD} ranks, of which those named; microseconds of CPU per action, {ROUNDS} rounds")
    print(f"{'pattern':<34} {'rank':>4} {'actions':>7} {'by hand':>8} {'planned':>8} {'ratio':>6} "
          f"{'A/A':>6}")  # fmt: skip
    found = costs()
    for cost in sorted(found, key=lambda cost: (cost.name, cost.rank)):
        print(
            f"{cost.name:<34} {cost.rank:>4} {cost.actions:>7} {cost.hand:8.2f} {cost.plan:8.2f} "
            f"{cost.ratio:6.2f} {cost.alike:6.2f}"
        )
    worst = max(found, key=lambda cost: cost.ratio)
    print(f"# worst: {worst.name} on rank {worst.rank}, {worst.ratio:.2f}")
    return worst


if __name__ == "__main__":
    report()
