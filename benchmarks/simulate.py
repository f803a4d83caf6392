"""Simulate rings, a pipeline and a hierarchical all-reduce: events per second, and where time goes.

Each case runs in processes of its own: three with numba, three with numpy alone; the best is told.
The columns are seconds: `file` from the text to a checked program, `first` the first simulation
(with numba, machine code comes from the cache), `simulate` the best of three further ones, from the
program to makespan and critical path. M/s are million events (rows) per second of `simulate`.
`compile` is what numba needs once per machine, with an empty cache. Run it on a quiet machine:
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
from typing import Any

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


def one(name: str, world: int, values: dict[str, Any], engine: str, contention: bool) -> Any:
    """The times of one case in this process."""
    from commlang.checks import check_program
    from commlang.program import build
    from commlang.resolve.modules import load_module
    from commlang.simulate import simulate
    from commlang.source import Source
    from commlang.topology import load_machine
    from commlang.verify import find_pattern

    began = time.perf_counter()
    if name == "hierarchical":
        definition = load_module(Source(HIERARCHICAL, "hierarchical.cl")).symbols[name]
    else:
        definition = find_pattern(name)
    program = build(definition, world, values)
    assert not [d for d in check_program(program) if d.severity == "error"]
    times = [time.perf_counter() - began]
    machine = load_machine("dgx-h100-rails")
    for _ in range(1 + ROUNDS):
        began = time.perf_counter()
        found = simulate(program, machine, contention=contention, engine=engine)  # pyright: ignore[reportArgumentType]
        makespan, length = found.makespan, len(found.critical)
        times.append(time.perf_counter() - began)
    best = min(times[2:])
    return {
        "events": len(program),
        "file": times[0],
        "first": times[1],
        "simulate": best,
        "makespan": makespan,
        "critical": length,
    }


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
    """The first simulation with an empty cache less one with a full one."""
    with tempfile.TemporaryDirectory() as folder:
        case = ("ring_all_reduce", 8, {"n": 64}, "numba", False)
        cold, warm = (child(*case, cache=folder)["first"] for _ in range(2))
    return cold - warm


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    print(f"# {cores} cores ({platform.machine()}), Python {platform.python_version()}")
    print(f"# numba compiles once per machine: {compile_seconds():.1f} s")
    print(f"{'case':38}{'events':>10} {'contention':>10} {'engine':>7}{'file':>8}{'first':>8}"
          f"{'simulate':>9}{'M/s':>7}  makespan")  # fmt: skip
    for label, name, world, values in CASES:
        for contention in (False, True):
            spans: set[float] = set()
            for engine in ("numba", "numpy"):
                found = min(
                    (child(name, world, values, engine, contention) for _ in range(ROUNDS)),
                    key=lambda one: one["simulate"],
                )
                spans.add(found["makespan"])
                rate = found["events"] / found["simulate"] / 1e6
                print(
                    f"{label:38}{found['events']:>10,} {'yes' if contention else 'no':>10} "
                    f"{engine:>7}{found['file']:8.3f}{found['first']:8.3f}"
                    f"{found['simulate']:9.3f}{rate:7.1f}  {found['makespan']:.9f} s",
                    flush=True,
                )
            assert len(spans) == 1, "both engines find the same makespan"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(one(*json.loads(sys.argv[1]))))
    else:
        main()
