"""Fuzzes the front end: no traceback, no hang, bounded memory, whatever the input.

    python -m tests.fuzz.run --count 100000 --seed 0 [--jobs 2] [--output FILE]
    python -m tests.fuzz.run --replay SEED

Every input follows from one number. Inputs run in child processes with an address space of their
parent's and 2 GiB more; one that takes longer than a minute of computing is said to hang. Exits
with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import time
import traceback
from collections import Counter
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.inputs import write
from tests.fuzz.target import swallow

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

MEMORY = 2 << 30
LONGEST_S = 60.0
_BATCH = 500


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, help="append the totals to this file")
    parser.add_argument("--replay", type=int, help="show one input and run it")
    chosen = parser.parse_args(arguments)
    if chosen.replay is not None:
        kind, data = write(chosen.replay)
        sys.stdout.write(f"{kind}\n{data.decode('utf-8', 'backslashreplace')}\n")
        print(swallow(data))
        return 0
    began = time.monotonic()
    totals, faults, worst = fuzz(range(chosen.seed, chosen.seed + chosen.count), chosen.jobs)
    text = report(chosen, totals, faults, worst, time.monotonic() - began)
    print(text)
    if chosen.output:
        with chosen.output.open("a") as file:
            file.write(text + "\n")
    return 1 if faults else 0


def fuzz(seeds: range, jobs: int) -> tuple[Counter[str], list[str], dict[str, float]]:
    """The answers by kind, the faults found, and the most seconds and MiB that an input took."""
    totals: Counter[str] = Counter()
    faults: list[str] = []
    worst = {"seconds": 0.0, "MiB": 0.0}
    parts = [seeds[i : i + _BATCH] for i in range(0, len(seeds), _BATCH)]
    running: dict[Connection, tuple[BaseProcess, range]] = {}
    current: dict[Connection, int] = {}
    while parts or running:
        while parts and len(running) < jobs:
            part = parts.pop(0)
            here, process = _start(part)
            running[here], current[here] = (process, part), part.start
        ready: list[Any] = wait(list(running))
        for here in ready:
            process, part = running[here]
            try:
                told, seed, more = here.recv()
            except EOFError:
                process.join()
                del running[here]
                if process.exitcode:
                    seed = current[here]
                    faults.append(f"seed {seed}: ended with {process.exitcode}")
                    if seed + 1 < part.stop:
                        parts.insert(0, range(seed + 1, part.stop))
                continue
            if told == "next":
                current[here] = seed
            elif told == "fault":
                faults.append(f"seed {seed}: {more}")
            else:
                totals += more[0]
                worst = {name: max(worst[name], more[1][name]) for name in worst}
    return totals, faults, worst


def _start(seeds: range) -> tuple[Connection, BaseProcess]:
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=_child, args=(seeds, there), daemon=True)
    process.start()
    there.close()
    return here, process


def _child(seeds: range, told: Connection) -> None:
    own = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (own + MEMORY, own + MEMORY))
    totals: Counter[str] = Counter()
    slowest = 0.0
    for seed in seeds:
        told.send(("next", seed, None))
        began = time.process_time()
        # The kernel ends a process that computes for longer: nothing in it has to cooperate.
        resource.setrlimit(
            resource.RLIMIT_CPU, (int(began + LONGEST_S) + 1, resource.RLIM_INFINITY)
        )
        try:
            kind, data = write(seed)
            totals[f"{kind}: {swallow(data)}"] += 1
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            told.send(("fault", seed, f"{type(error).__name__}: {str(error)[:200]} ({place})"))
        slowest = max(slowest, time.process_time() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told.send(("done", 0, (totals, {"seconds": slowest, "MiB": peak})))


def report(
    chosen: argparse.Namespace,
    totals: Counter[str],
    faults: list[str],
    worst: dict[str, float],
    seconds: float,
) -> str:
    last = chosen.seed + chosen.count - 1
    lines = [f"seeds {chosen.seed} to {last}, {seconds:,.0f} s"]
    lines += [f"  {name:34}{number:8,}" for name, number in sorted(totals.items())]
    lines += [f"  {'the slowest, s of computing':34}{worst['seconds']:8.1f}"]
    lines += [f"  {'the most memory, MiB':34}{worst['MiB']:8.0f}"]
    lines += [f"  {'tracebacks, hangs, crashes':34}{len(faults):8,}"]
    return "\n".join([*lines, *(f"    {fault}" for fault in faults[:60])])


if __name__ == "__main__":
    sys.exit(main())
