"""Whole-process times of the command line: what an editor or a person waits for.

Uses the `commlang` beside the interpreter if it is installed there, else `python -m commlang`.
Prints the least and the median of 15 runs: `python benchmarks/startup.py`.
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

from commlang import resources

RUNS = 15
FAULTY = """\
pattern shift(x: float32[n], y: float32[n], n = 4Ki):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
"""


def measure(command: list[str], exit_code: int) -> list[float]:
    """The times of a command, each checked to end as it should."""
    times: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, check=False)
        times.append(time.perf_counter() - start)
        assert done.returncode == exit_code, done.stderr.decode()
    return times


def main() -> None:
    """Measure and print."""
    script = Path(sys.executable).with_name("commlang")
    commlang = [str(script)] if script.exists() else [sys.executable, "-m", "commlang"]
    clean = str(resources.patterns_dir() / "point_to_point" / "ring_all_reduce.cl")
    cores = len(os.sched_getaffinity(0))
    print(f"# {cores} cores ({platform.machine()}), Python {platform.python_version()}; seconds")
    with tempfile.TemporaryDirectory() as folder:
        faulty = Path(folder, "ring.cl")
        faulty.write_text(FAULTY, encoding="utf-8")
        cases = (
            ("--version", ["--version"], 0),
            ("lint, a clean file", ["lint", clean], 0),
            ("lint, a deadlock with its cycle", ["lint", str(faulty)], 1),
            ("run, refused for a deadlock", ["run", str(faulty)], 1),
            ("lint, the whole library", ["lint", str(resources.patterns_dir())], 0),
        )
        for name, arguments, exit_code in cases:
            times = measure([*commlang, *arguments], exit_code)
            print(f"{name:32} least {min(times):.3f}  median {statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
