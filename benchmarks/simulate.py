"""Simulate rings, a pipeline and a hierarchical all-reduce: events per second, and where time goes.

Each case runs in a process of its own. The columns are seconds: `file` from the text to a checked
program, `first` the first simulation (numba loads its machine code then), `simulate` the best of
three further ones (of numpy one), from the checked program to makespan and critical path, `cpu` the
processor time of that one. M/s are million events (rows) a second of `simulate`, and of `cpu`.
Without numba, contention is plain Python, which is timed up to a million events. What numba needs
to compile, once per machine, is told apart. Run it on a quiet machine:
`python benchmarks/simulate.py`.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.simulate.run import Engine

HIERARCHICAL = """\
pattern hierarchical(x: float32[n], n = 64Mi, node = 8):
    mesh inter = world // node, intra = node
    let parts = x.chunks(node)
    let mine = parts[intra.index]
    reduce_scatter(mine, parts, group=intra)
    all_reduce(mine, group=inter)
    all_gather(parts, mine, group=intra)
"""
CASES: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("ring all-reduce, 64 ranks", "ring_all_reduce", 64, {"n": 4096}),
    ("ring all-reduce, 256 ranks", "ring_all_reduce", 256, {"n": 65536}),
    ("ring all-reduce, 1,024 ranks", "ring_all_reduce", 1024, {"n": 1048576}),
    ("1F1B, 64 stages, 4,096 micro-batches", "one_f_one_b", 64, {"micro": 4096}),
    ("hierarchical all-reduce, 10,000 ranks", "hierarchical", 10_000, {}),
)
ROUNDS = 3
PLAIN = 1_000_000
"""Most events that plain Python is timed with."""


def program_of(name: str, world: int, values: dict[str, Any]) -> Program:
    """The checked program of a case."""
    from commlang.checks import check_program
    from commlang.program import build
    from commlang.resolve.modules import load_module
    from commlang.source import Source
    from commlang.verify import find_pattern

    if name == "hierarchical":
        definition = load_module(Source(HIERARCHICAL, "hierarchical.cl")).symbols[name]
    else:
        definition = find_pattern(name)
    program = build(definition, world, values)
    assert not [d for d in check_program(program) if d.severity == "error"]
    return program


def one(name: str, world: int, values: dict[str, Any], engines: list[Engine]) -> Any:
    """The times of one case in this process, by engine, without contention and with."""
    began = time.perf_counter()
    program = program_of(name, world, values)
    file, found = time.perf_counter() - began, list[dict[str, Any]]()
    for engine in engines:
        for contention in (False, True):
            if engine == "numpy" and contention and len(program) > PLAIN:
                continue
            times = timed(program, engine, contention)
            told = {"events": len(program), "engine": engine, "contention": contention}
            found.append({**told, "file": file, **times})
    return found


def timed(program: Program, engine: Engine, contention: bool) -> dict[str, float]:
    """The times of simulations of one program."""
    from commlang.simulate import simulate
    from commlang.topology import load_machine

    machine = load_machine("dgx-h100-rails")
    times: list[tuple[float, float]] = []
    makespan = 0.0
    for _ in range(1 + (ROUNDS if engine == "numba" else 1)):
        began, cpu = time.perf_counter(), time.process_time()
        found = simulate(program, machine, contention=contention, engine=engine)
        makespan = found.makespan
        assert len(found.critical)
        times.append((time.perf_counter() - began, time.process_time() - cpu))
        del found
    best, cpu = min(times[1:])
    return {"first": times[0][0], "simulate": best, "cpu": cpu, "makespan": makespan}


def child(*arguments: Any, cache: str | None = None) -> Any:
    environment = dict(os.environ)
    if cache:
        environment["XDG_CACHE_HOME"] = cache
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def compile_seconds() -> float:
    """What the first simulation with an empty cache takes longer than one with a full cache."""
    with tempfile.TemporaryDirectory() as folder:
        case = ("ring_all_reduce", 8, {"n": 64}, ["numba"])
        cold, warm = (child(*case, cache=folder)[0]["first"] for _ in range(2))
    return cold - warm


def main() -> None:
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"# {cores} cores ({platform.machine()}), Python {platform.python_version()}; "
          f"load average at the start {load:.1f}")  # fmt: skip
    print(f"# compiling, once per machine: {compile_seconds():.1f} s")
    print(f"{'case':39}{'events':>9} {'contention':>10} {'engine':>6}{'file':>8}{'first':>8}"
          f"{'simulate':>9}{'cpu':>8}{'M/s':>6}{'of cpu':>7}  makespan")  # fmt: skip
    for label, name, world, values in CASES:
        spans: dict[bool, set[float]] = {False: set(), True: set()}
        for found in child(name, world, values, ["numba", "numpy"]):
            spans[found["contention"]].add(found["makespan"])
            rate, pure = (found["events"] / found[key] / 1e6 for key in ("simulate", "cpu"))
            print(
                f"{label:39}{found['events']:>9,} {'yes' if found['contention'] else 'no':>10} "
                f"{found['engine']:>6}{found['file']:8.3f}{found['first']:8.3f}"
                f"{found['simulate']:9.3f}{found['cpu']:8.3f}{rate:6.2f}{pure:7.2f}  "
                f"{found['makespan']:.9f} s",
                flush=True,
            )
        assert all(len(found) == 1 for found in spans.values()), "engines agree"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(one(*json.loads(sys.argv[1]))))
    else:
        main()
