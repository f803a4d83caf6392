"""Random patterns against real gloo ranks: does the checker say what happens?

    python -m tests.differential.run --count 10000 --seed 0 [--jobs 3] [--output FILE]
    python -m tests.differential.run --replay SEED

Each trial is decided by one number. The first form prints totals, and the seeds on which checker
and ranks differ; it exits with 1 if there are any. The second shows one trial in full.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tests.differential.pool import pools
from tests.differential.trial import Trial, run_trial
from tests.differential.verdict import Claim

if TYPE_CHECKING:
    from collections.abc import Iterable

_BATCH = 100


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first trial")
    parser.add_argument("--jobs", type=int, default=3, help="trials at a time")
    parser.add_argument("--output", type=Path, help="append the totals to this file")
    parser.add_argument("--replay", type=int, help="run one seed and show it")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    gc.freeze()  # all that is imported stays shared between the ranks, which are forks
    if chosen.replay is not None:
        return _replay(chosen.replay)
    began = time.monotonic()
    totals, wrong = _all(range(chosen.seed, chosen.seed + chosen.count), chosen.jobs)
    text = report(totals, wrong, chosen.seed, chosen.count, time.monotonic() - began)
    print(text)
    if chosen.output:
        with chosen.output.open("a") as file:
            file.write(text + "\n")
    return 1 if wrong else 0


def _replay(seed: int) -> int:
    with pools() as pool_of:
        trial = run_trial(seed, pool_of)
    print(trial.text)
    print(f"world {trial.pattern.world}; checker: {trial.verdict}; ranks: {trial.outcome}")
    print("\n".join(trial.wrong) or "they agree")
    return 1 if trial.wrong else 0


def _all(seeds: range, jobs: int) -> tuple[Counter[str], list[str]]:
    """Trials in several processes, each with ranks of its own."""
    fork = multiprocessing.get_context("fork")
    batches, results = fork.SimpleQueue(), fork.SimpleQueue()
    parts = [seeds[i : i + _BATCH] for i in range(0, len(seeds), _BATCH)]
    workers = [fork.Process(target=_work, args=(batches, results)) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for part in [*parts, *[None] * jobs]:
        batches.put(part)
    totals: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(len(parts)):
        counts, faults = results.get()
        totals += counts
        wrong += faults
        for fault in faults:
            print(fault, file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {len(parts)} batches", end="", file=sys.stderr)
    for worker in workers:
        worker.join()
    return totals, sorted(wrong)


def _work(batches: Any, results: Any) -> None:
    while (seeds := batches.get()) is not None:
        results.put(_batch(seeds))


def _batch(seeds: Iterable[int]) -> tuple[Counter[str], list[str]]:
    totals: Counter[str] = Counter()
    wrong: list[str] = []
    with pools() as pool_of:
        for seed in seeds:
            try:
                trial = run_trial(seed, pool_of)
            except Exception as error:
                wrong.append(f"seed {seed}: {type(error).__name__}: {error}")
                continue
            totals.update(_told(trial))
            wrong += [f"seed {seed}: {fault}" for fault in trial.wrong]
    return totals, wrong


def _told(trial: Trial) -> list[str]:
    """What a trial counts as."""
    claim = trial.verdict.claim
    if claim is Claim.UNSOUND:
        return ["discarded"]
    pattern = trial.pattern
    told = ["run", f"said: {claim}", f"{claim} -> {trial.outcome}", f"world {pattern.world}"]
    told.append("size: large (16 KiB and more)" if pattern.large else "size: small")
    if pattern.rooted:
        told.append("with rooted collectives")
    if trial.values:
        told.append("values compared")
    if trial.executed:
        told.append("values compared (Executor)")
    if trial.holds is not None:
        told.append(f"contract {trial.verdict.contract}")
    told += [f"code {code}" for code in trial.verdict.codes]
    return told


def report(totals: Counter[str], wrong: list[str], seed: int, count: int, seconds: float) -> str:
    """The totals as text."""
    run = max(1, totals["run"])
    lines = [f"seeds {seed} to {seed + count - 1}, {seconds:,.0f} s, torch {torch.__version__}"]
    lines.append(f"  {'run':34}{totals['run']:8,}")
    lines += [
        f"  {name:34}{number:8,}{number / run:8.1%}"
        for name, number in sorted(totals.items())
        if name != "run"
    ]
    lines.append(f"  {'checker and ranks differ':34}{len(wrong):8,}")
    return "\n".join([*lines, *(f"    {fault}" for fault in wrong[:50])])


if __name__ == "__main__":
    sys.exit(main())
