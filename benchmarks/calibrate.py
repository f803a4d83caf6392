"""How far predictions are off: calibrated once, then the library's patterns in later processes.

    python benchmarks/calibrate.py > benchmarks/calibrate.txt
    python benchmarks/calibrate.py gloo 4        # one backend, one world

`commlang calibrate` measures ping-pong, all_reduce and local work, and writes a machine. Then other
processes run every pattern of the library that moves data and calls no extern, at four sizes of its
largest tensor, and each is simulated on that machine. A cell is the measured time of a run in ms
(median over runs, of the slowest rank; the mean of two processes) and by how much the prediction is
off. all_reduce itself was calibrated, so its errors say how well figures are repeated, and do not
count. The exit code is 1 if the median of errors is above 20 % at 2 or 4 ranks; 8 ranks are told
only. It takes some ten minutes, in which nothing else should run.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from commlang.api import load
from commlang.cli.start import started
from commlang.errors import CommlangError
from commlang.execute.diagnosis import Narrator
from commlang.execute.options import LaunchOptions
from commlang.execute.settings import BenchSettings
from commlang.operations import Kind
from commlang.resolve.library import library_files, library_name
from commlang.simulate import simulate
from commlang.topology import load_machine
from commlang.tuning.candidates import largest_tensor

if TYPE_CHECKING:
    from commlang.plan import Plan

TOPICS = ("collectives", "composed", "hierarchical", "point_to_point")
SIZES = (64 << 10, 512 << 10, 4 << 20, 16 << 20)
CASES = (("gloo", 2), ("gloo", 4), ("mpi", 2), ("mpi", 4), ("gloo", 8))
JUDGED, TARGET = (2, 4), 0.2
TOLD = (64 << 10, 4 << 20)
"""Sizes at the worlds that are not judged."""
RUNS, WARMUP, ROUNDS = 21, 2, 60
CALIBRATED = ("all_reduce",)
IDLE = (Kind.EXTERN, Kind.COMPUTE)
"""Whose time the file tells, so that there would be nothing to predict."""


@dataclass(frozen=True)
class Job:
    """A pattern at one size; `bytes` are those of its largest tensor."""

    name: str
    bytes: int
    plan: Plan


def jobs(world: int, backend: str) -> list[Job]:
    """All patterns at all sizes that can be had at this world."""
    names = [library_name(path).rpartition("/") for path in library_files()]
    found: list[Job] = []
    for name in (name for topic, _, name in names if topic in TOPICS):
        for size in SIZES if world in JUDGED else TOLD:
            plan = planned(name, size, world, backend)
            if plan is not None:
                found.append(Job(name, size, plan))
    return found


def planned(name: str, size: int, world: int, backend: str) -> Plan | None:
    """The pattern with a largest tensor of about so many bytes; None if there is no such thing."""
    pattern, target = load(name), backend if backend == "mpi" else None
    if "n" not in pattern.parameters:
        return None
    try:
        least = largest_tensor(pattern.plan(world, backend=target, n=world).program())
        if least is None:
            return None
        n = max(round(size / least[1]), 1) * world
        plan = pattern.plan(world, backend=target, n=n)
    except CommlangError:
        return None
    program = plan.program()
    kinds = set(program.kind.tolist())
    return None if kinds & set(IDLE) or not len(program) else plan


def measured(found: list[Job], backend: str, world: int) -> list[float]:
    """Seconds of each job: the median over runs of the slowest rank's time."""
    from commlang.execute.bench import bench

    settings = BenchSettings(
        backend=backend, device="cpu", timeout=120.0, iterations=RUNS, warmup=WARMUP, check=0
    )
    options = LaunchOptions(nproc_per_node=world)
    modules = ("commlang.execute.bench",)
    extra: Any = ([job.plan for job in found], settings)
    (result, *_) = started(bench, extra, options, settings, Narrator(), modules)
    return [_slowest([sample.seconds for sample in samples]) for samples in result.samples]


def _slowest(ranks: list[list[float]]) -> float:
    return median(max(turn) for turn in zip(*ranks, strict=True))


def calibrated(folder: str, backend: str, world: int) -> str:
    """The file of a machine, calibrated by processes of its own."""
    path = str(Path(folder, f"{backend}-{world}.yaml"))
    command = [sys.executable, "-m", "commlang", "calibrate", "-o", path]
    options = ["--backend", backend, "--nproc-per-node", str(world), "--iters", str(ROUNDS)]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    return path


def case(folder: str, backend: str, world: int) -> float:
    """Print what one backend and world came to; the median error of what was predicted."""
    machine = load_machine(calibrated(folder, backend, world))
    found = jobs(world, backend)
    first, second = (measured(found, backend, world) for _ in range(2))
    seconds = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    noise = median(max(a, b) / min(a, b) - 1 for a, b in zip(first, second, strict=True))
    errors: dict[tuple[str, int], tuple[float, float]] = {}
    for job, time_ in zip(found, seconds, strict=True):
        predicted = simulate(job.plan.program(), machine, buckets=job.plan.buckets).makespan
        errors[job.name, job.bytes] = time_, predicted / time_ - 1
    link, channel = machine.links[0], machine.levels[0].channel or 0.0
    print(
        f"\n{world} ranks on {backend}: alpha {(link.latency + 2 * link.overhead) * 1e6:.0f} us, "
        f"gap {link.gap * 1e6:.0f} us, {link.bandwidth / 1e9:.2f} GB/s of one message, "
        f"{channel / 1e9:.2f} of all"
    )
    print(f"{'':34}" + "".join(f"{size >> 10:>14} KiB" for size in SIZES))
    for name in dict.fromkeys(job.name for job in found):
        cells = [errors.get((name, size), (math.nan, math.nan)) for size in SIZES]
        shown = "".join(f"{1e3 * t:>10.2f} {e:>+7.0%}" for t, e in cells)
        print(f"{name:34}{shown}{'  calibrated' if name in CALIBRATED else ''}")
    counted = {key: abs(e) for key, (_, e) in errors.items() if key[0] not in CALIBRATED}
    for size in sorted({size for _, size in counted}):
        print(
            f"  {size >> 10} KiB: median error "
            f"{median(e for (_, s), e in counted.items() if s == size):.0%}"
        )
    result = median(counted.values())
    print(f"  median error of {len(counted)} predictions: {result:.0%}")
    print(f"  the same runs in two processes differ by {noise:.0%} in the middle", flush=True)
    return result


def main() -> int:
    start = time.monotonic()
    wanted = [(sys.argv[1], int(sys.argv[2]))] if len(sys.argv) > 2 else CASES
    with tempfile.TemporaryDirectory() as folder:
        results = {key: case(folder, *key) for key in wanted}
    load_now = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"\n# {time.monotonic() - start:.0f} s; load averages at the end: {load_now}")
    late = [f"{w} ranks on {b}" for (b, w), e in results.items() if w in JUDGED and e > TARGET]
    print(f"# above {TARGET:.0%}: {', '.join(late) or 'none'}")
    return bool(late)


if __name__ == "__main__":
    sys.exit(main())
