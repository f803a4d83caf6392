"""Faults in the shipped patterns: does the checker see each that changes what a pattern does?

    python -m tests.mutation.run [--jobs 2] [--only NAME] [--every N] [--output FILE]

Every fault of every kind is applied to every pattern, one at a time. Prints totals for each kind,
and all mutants that changed and were not refused; exits with 1 if more than 1 % of those that
changed survive.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tests.differential.pool import pools
from tests.execute.test_library_on_gloo import LIBRARY, exported, name_of
from tests.mutation.faults import KINDS, mutants
from tests.mutation.trial import Contract, Effect, Result, Subject

if TYPE_CHECKING:
    from commlang.resolve.modules import Definition

_ENOUGH = 0.99


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2, help="patterns at a time")
    parser.add_argument("--only", help="this pattern alone")
    parser.add_argument("--every", type=int, default=1, help="every N-th mutant only")
    parser.add_argument("--output", type=Path, help="write the totals to this file")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    gc.freeze()  # all that is imported stays shared between the ranks, which are forks
    began = time.monotonic()
    definitions = [d for d in exported(LIBRARY) if chosen.only in (None, name_of(d))]
    results = all_results(definitions, chosen.jobs, chosen.every)
    text, enough = report(results, time.monotonic() - began)
    print(text)
    if chosen.output:
        chosen.output.write_text(text + "\n")
    return 0 if enough else 1


def all_results(definitions: list[Definition], jobs: int, every: int = 1) -> list[Result]:
    """The results of the mutants of all patterns, each pattern in one of several processes."""
    fork = multiprocessing.get_context("fork")
    numbers, answers = fork.SimpleQueue(), fork.SimpleQueue()
    workers = [
        fork.Process(target=_work, args=(definitions, every, numbers, answers)) for _ in range(jobs)
    ]
    for worker in workers:
        worker.start()
    for number in [*range(len(definitions)), *[None] * jobs]:
        numbers.put(number)
    found = {}
    for done in range(len(definitions)):
        number, results, failure = answers.get()
        if failure:
            print(failure, file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print(f"\r{done + 1} of {len(definitions)} patterns", end="", file=sys.stderr)
        found[number] = results
    for worker in workers:
        worker.join()
    return [result for _, results in sorted(found.items()) for result in results]


def _work(definitions: list[Definition], every: int, numbers: Any, answers: Any) -> None:
    with pools() as pool_of:
        while (number := numbers.get()) is not None:
            definition = definitions[number]
            results: list[Result] = []
            failure = ""
            try:
                subject = Subject(definition, pool_of)
                chosen = mutants(definition)[number % every :: every]
                results = [subject.judge(mutant) for mutant in chosen]
            except Exception as error:
                failure = f"{name_of(definition)}: {type(error).__name__}: {error}"
            answers.put((number, results, failure))


# ---------------------------------------------------------------------------- report


def report(results: list[Result], seconds: float) -> tuple[str, bool]:
    """The totals as text, and whether enough of the changed mutants were killed."""
    lines = [f"{len(results):,} mutants, {seconds:,.0f} s, torch {torch.__version__}", ""]
    for contract in Contract:
        lines += [contract, *_table([r for r in results if r.contract is contract]), ""]
    lines += _by_pattern(results)
    lines += _listed("changed and not refused", _survivors(results))
    lines += _listed("only externs saw it, not refused", [
        r for r in results if r.effect is Effect.EXTERNS and not r.killed
    ])  # fmt: skip
    lines += _alarms(results)
    changed = [r for r in results if r.effect is Effect.CHANGED]
    killed = sum(r.killed for r in changed)
    lines[1:1] = [f"{len(changed):,} changed what a pattern does, {killed:,} of them were killed"]
    return "\n".join(lines), killed >= _ENOUGH * len(changed)


def _survivors(results: list[Result]) -> list[Result]:
    return [r for r in results if r.effect is Effect.CHANGED and not r.killed]


def _table(results: list[Result]) -> list[str]:
    head = f"  {'kind':26}{'all':>6}{'never ran':>11}{'changed':>9}{'killed':>8}{'survived':>10}"
    lines = [head + f"{'externs':>9}{'equal':>7}{'refused':>9}"]
    kinds = [kind for kind in KINDS if any(r.mutant.kind == kind for r in results)]
    for kind in [*kinds, "all"]:
        here = [r for r in results if kind in (r.mutant.kind, "all")]
        count = Counter(r.effect for r in here)
        survived = len(_survivors(here))
        refused = sum(r.effect is Effect.SAME and r.killed for r in here)
        lines.append(
            f"  {kind:26}{len(here):6,}{count[Effect.REFUSED]:11,}{count[Effect.CHANGED]:9,}"
            f"{count[Effect.CHANGED] - survived:8,}{survived:10,}{count[Effect.EXTERNS]:9,}"
            f"{count[Effect.SAME]:7,}{refused:9,}"
        )
    changed = sum(r.effect is Effect.CHANGED for r in results)
    rate = 1 - len(_survivors(results)) / changed if changed else 1.0
    return [*lines, f"  killed of the changed: {rate:.2%}"]


def _by_pattern(results: list[Result]) -> list[str]:
    """Patterns with survivors: how strong their contracts are."""
    changed: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.effect is Effect.CHANGED:
            changed[result.pattern].append(result)
    lines = ["survivors by pattern"]
    for name, found in changed.items():
        survived = sum(not r.killed for r in found)
        if survived:
            said = found[0].contract.name.lower()
            lines.append(f"  {name:34}{survived:5} of {len(found)} changed; contract: {said}")
    return [*lines, ""]


def _listed(title: str, results: list[Result]) -> list[str]:
    lines = [f"{title}: {len(results)}"]
    for result in results:
        lines.append(f"  {_said(result)}")
        lines.append(f"      {result.why}")
    return [*lines, ""]


def _said(result: Result) -> str:
    line = result.mutant.text.splitlines()[result.mutant.line - 1].strip()
    return f"{result.pattern}:{result.mutant.line}: {result.mutant.kind}: `{line}`"


def _alarms(results: list[Result]) -> list[str]:
    """Refused although the runs were the same: hazards that did not strike, or false alarms."""
    same = [r for r in results if r.effect is Effect.SAME and r.killed]
    counts = Counter(code for r in same for code in r.codes)
    lines = [f"refused, and the runs were the same: {len(same)}"]
    lines += [f"  {code}{number:6,}" for code, number in sorted(counts.items())]
    return lines + [f"  {' '.join(r.codes):14} {_said(r)}" for r in same]


if __name__ == "__main__":
    sys.exit(main())
