"""What a tuned choice gains over gloo's all_reduce: chosen in one run, judged in another.

    python benchmarks/tune.py > benchmarks/tune.txt

`commlang tune` runs twice, in processes of its own. The first table chooses, the second one judges
what was chosen: `own` is gloo's all_reduce, `gain` its median over that of the choice, `regret` how
much longer, by the mean, the choice takes than the best single pattern of the second run. Times are
of the slowest rank, in ms. The exit code is 1 if at 8 ranks a gain from 1 to 64 KiB is below 3.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from commlang.tuning.table import Table

if TYPE_CHECKING:
    from commlang.tuning.table import Row

COLLECTIVE = "all_reduce"
TARGET, WORLD, MOST = 3.0, 8, 64 << 10


def measured(path: Path) -> Table:
    """A table of a process set of its own."""
    worlds = ("--nproc-per-node", "4", "--nproc-per-node", str(WORLD))
    what = ("--collective", COLLECTIVE, "--backend", "gloo", "--device", "cpu")
    command = [sys.executable, "-m", "commlang", "tune", *what, *worlds, "-o", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Table.read(path)


def judged(first: Table, row: Row) -> tuple[str, float]:
    """A line on what the first table chooses, by the times of a row of the second, and the gain."""
    names = first.choose(row.world, row.bytes).names
    chosen = names[0] if names else COLLECTIVE
    best = min(row.times, key=lambda name: row.times[name].mean)
    own, mine, least = (row.times[name] for name in (COLLECTIVE, chosen, best))
    gain = own.p50 / mine.p50
    shown = (
        f"{row.world:>5} {row.bytes:>8} {1e3 * own.p50:>7.2f}  {chosen:<28} {1e3 * mine.p10:>7.2f} "
        f"{1e3 * mine.p50:>7.2f} {1e3 * mine.p90:>7.2f} {gain:>6.2f}  "
        f"{best:<28} {mine.mean / least.mean - 1:>7.0%}"
    )
    return shown, gain


def main() -> int:
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        first = measured(Path(folder, "first.json"))
        second = measured(Path(folder, "second.json"))
    host = second.host
    print(f"# commlang {second.commlang}, torch {second.torch}, Python {host.python}")
    print(f"# {COLLECTIVE} of {second.dtype} on gloo; {host.cpu}, {host.cpus} CPUs")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"# {time.monotonic() - start:.0f} s; load averages at the end: {load}")
    print(
        f"{'ranks':>5} {'bytes':>8} {'own':>7}  {'chosen':<28} {'p10':>7} {'p50':>7} {'p90':>7} "
        f"{'gain':>6}  {'best':<28} {'regret':>7}"
    )
    late: list[int] = []
    for row in second.rows:
        line, gain = judged(first, row)
        print(line)
        if row.world == WORLD and row.bytes <= MOST and gain < TARGET:
            late.append(row.bytes)
    print(f"# below {TARGET:g} times gloo at {WORLD} ranks, up to {MOST} bytes: {late or 'none'}")
    return bool(late)


if __name__ == "__main__":
    sys.exit(main())
