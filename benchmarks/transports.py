"""What a verdict on ten million events costs under each transport model, in CPU seconds.

    python benchmarks/transports.py > benchmarks/transports.txt

The ring all-reduce of the library at 1,415 ranks runs in lockstep, which is recognised without a
graph; "graph" decides it the long way, as patterns that do not run in lockstep need it. One of
those is the library's 1F1B pipeline, here with 64 stages.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commlang.checks import facts as known
from commlang.checks.hangs import batch_hang
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports import RENDEZVOUS, Backend, NcclInit, Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program import Program

PATTERNS = Path(__file__).parents[1] / "patterns"
TARGETS = {
    "rendezvous": RENDEZVOUS,
    "nccl lazy": Target(Backend.NCCL, NcclInit.LAZY),
    "nccl eager": Target(Backend.NCCL, NcclInit.EAGER),
}


def load(path: str, world: int, **values: int) -> Program:
    module = load_module(Source.read(PATTERNS / path))
    return build(module.symbols[module.exported[0]], world, values)


def timed(call: Callable[[], Any]) -> tuple[float, bool]:
    start = time.process_time()
    found = bool(call())
    return time.process_time() - start, found


def decide(program: Program, target: Target, *, graph: bool) -> None:
    start = time.process_time()
    facts = known.gather_facts(program, target)
    met = time.process_time() - start
    if graph:
        vars(facts)["aligned"] = False
    parts = {
        "deadlock": lambda: facts.deadlock,
        "issue order": lambda: facts.nccl_hang,
        "one queue": lambda: facts.nccl_queue_hang,
        "whole batches": lambda: batch_hang(facts),
    }
    print(f"  {'matching and points':<24} {met:>8.2f}")
    for name, call in parts.items():
        if name == "deadlock" or target.backend is Backend.NCCL:
            seconds, found = timed(call)
            print(f"  {name:<24} {seconds:>8.2f}{'  found' if found else ''}")


def main() -> None:
    cores, load_now = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"Python {platform.python_version()}, {cores} cores, load {load_now:.1f} at the start\n")
    programs = {
        "ring all-reduce": load("point_to_point/ring_all_reduce.cl", 1415),
        "1F1B": load("pipeline/one_f_one_b.cl", 64, micro=12_000),
    }
    for name, program in programs.items():
        print(f"{name}: {len(program):,} events on {program.world:,} ranks")
        for target_name, target in TARGETS.items():
            for graph in (False, True):
                print(f" {target_name}{', graph' if graph else ''}")
                decide(program, target, graph=graph)


if __name__ == "__main__":
    main()
