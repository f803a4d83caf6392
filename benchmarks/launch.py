"""How long local CPU ranks take from the start of a process to their first collective.

    python benchmarks/launch.py > benchmarks/launch.txt

Each figure is a whole program: the interpreter's start, `import torch`, the ranks' start, their
process group and one all_reduce, until the last rank has its result. "end" is until the program has
ended. Cases take turns, so that a busy moment of the machine does not fall on one of them alone.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from commlang.execute.launch import launch
from commlang.execute.options import LaunchOptions

if TYPE_CHECKING:
    from commlang.execute.rank import RankContext

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 3
CASES = [
    ("fork", 4),
    ("fork", 16),
    ("fork", 64),
    ("fork", 128),
    ("spawn", 4),
    ("spawn", 16),
    ("torchrun", 4),
    ("torchrun", 16),
]


def first_collective(context: RankContext) -> float:
    """The moment at which this rank has done an all_reduce, in seconds of the machine's clock."""
    import torch
    import torch.distributed as dist

    with context.join(backend="gloo", device="cpu"):
        dist.all_reduce(torch.ones(1))
        return time.monotonic()


def program(way: str, ranks: int) -> None:
    """What is measured: start `ranks` and print when the last of them was through."""
    if way == "torchrun":
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        dist.all_reduce(torch.ones(1))
        os.write(1, f"{time.monotonic()}\n".encode())
        dist.destroy_process_group()
        return
    method = cast("Literal['fork', 'spawn']", way)
    moments = launch(first_collective, (), LaunchOptions(ranks, start_method=method))
    print(max(moments))


def measure(way: str, ranks: int, scratch: str) -> tuple[float, float]:
    """Seconds until the last rank's first collective, and until the program's end."""
    command = [sys.executable]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if way == "torchrun":
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        # Where it leaves logs; for `launch`, TMPDIR would also be where the ranks meet.
        environment["TMPDIR"] = scratch
    begin = time.monotonic()
    done = subprocess.run(
        [*command, __file__, way, str(ranks)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    end = time.monotonic()
    return max(map(float, done.stdout.split())) - begin, end - begin


def machine() -> str:
    """What the figures depend on."""
    import torch

    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = platform.python_version()
    return f"{cpus} cores ({platform.machine()}), Python {python}, torch {torch.__version__}"


def main() -> None:
    """Measure every case and print the table."""
    times: dict[tuple[str, int], list[tuple[float, float]]] = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(REPEATS):
            for way, ranks in CASES:
                times[way, ranks].append(measure(way, ranks, scratch))
    print(f"Local CPU ranks to their first collective, in seconds; {REPEATS} runs of each.")
    print(f"Machine: {machine()}; load during the runs {os.getloadavg()[1]:.1f} (5 min).\n")
    print(f"{'start':<10}{'ranks':>6}{'median':>9}{'best':>8}{'worst':>8}{'end':>8}")
    for (way, ranks), runs in times.items():
        first = [run[0] for run in runs]
        end = statistics.median(run[1] for run in runs)
        middle = statistics.median(first)
        print(f"{way:<10}{ranks:>6}{middle:>9.2f}{min(first):>8.2f}{max(first):>8.2f}{end:>8.2f}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        program(sys.argv[1], int(sys.argv[2]))
    else:
        main()
