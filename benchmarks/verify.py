"""Check patterns with all rules and prove their contracts, at sizes where other tools stop.

Prints a table; each row is the best of three processes, with the peak of its resident memory. The
last column of seconds is the whole process, from the start of Python to the verdict. Run it on a
quiet machine: `python benchmarks/verify.py`.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from typing import Any

# name, file, pattern, world, parameters, target seconds, target bytes (None: none set)
CASES: tuple[tuple[str, str, str, int, dict[str, Any], float | None, int | None], ...] = (
    (
        "ring all-reduce, 256 ranks",
        "point_to_point/ring_all_reduce.cl",
        "ring_all_reduce",
        256,
        {},
        1.0,
        None,
    ),
    (
        "ring all-reduce, 1,024 ranks",
        "point_to_point/ring_all_reduce.cl",
        "ring_all_reduce",
        1024,
        {},
        10.0,
        2 << 30,
    ),
    (
        "recursive doubling with max, 1,024 ranks",
        "point_to_point/recursive_doubling_all_reduce.cl",
        "recursive_doubling_all_reduce",
        1024,
        {"op": "max"},
        None,
        None,
    ),
    (
        "hierarchical all-reduce, 512 ranks",
        "hierarchical/hierarchical_all_reduce.cl",
        "hierarchical_all_reduce",
        512,
        {"node": 8},
        None,
        None,
    ),
    (
        "all-to-all, 256 ranks",
        "point_to_point/pairwise_all_to_all.cl",
        "pairwise_all_to_all",
        256,
        {},
        None,
        None,
    ),
    (
        "halo exchange of 64Ki x 64Ki, 64 ranks",
        "training/halo_exchange.cl",
        "halo_exchange",
        64,
        {"py": 8, "ny": 8192, "nx": 8192},
        None,
        None,
    ),
)


def one(path: str, name: str, world: int, values: dict[str, Any]) -> dict[str, float]:
    """Time the parts of one case in this process."""
    from commlang import resources
    from commlang.checks import RULES
    from commlang.checks.facts import gather_facts
    from commlang.checks.selection import DEFAULT
    from commlang.program import build
    from commlang.resolve.check import check_all
    from commlang.resolve.modules import load_module
    from commlang.source import Source

    marks = [time.perf_counter()]
    module = load_module(Source.read(resources.patterns_dir() / path))
    assert not check_all(module)
    program = build(module.symbols[name], world, values)
    marks.append(time.perf_counter())
    facts = gather_facts(program)
    rules = [rule for rule in RULES if DEFAULT.wants(rule.RULE.code)]
    assert not [d for r in rules if r.RULE.code[:4] != "CL24" for d in r.check(facts)]
    marks.append(time.perf_counter())
    assert facts.contracts == []
    marks.append(time.perf_counter())
    import resource

    return {
        "events": len(program),
        "expand": marks[1] - marks[0],
        "rules": marks[2] - marks[1],
        "contracts": marks[3] - marks[2],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def best_of(job: str, times: int = 3) -> dict[str, float]:
    """The fastest of some processes, and how long all of it took."""
    best: dict[str, float] = {}
    for _ in range(times):
        start = time.perf_counter()
        command = [sys.executable, __file__, job]
        out = subprocess.run(command, check=True, capture_output=True, text=True)
        total = time.perf_counter() - start
        if not best or total < best["process"]:
            best = {**json.loads(out.stdout), "process": total}
    return best


def main() -> None:
    """Run every case and print the table."""
    cores = len(os.sched_getaffinity(0))
    print(f"# {cores} cores ({platform.machine()}), Python {platform.python_version()}")
    print("# seconds; expand includes parsing, rules are all but those on contracts")
    head = f"{'case':42} {'events':>11} {'expand':>7} {'rules':>7} {'contracts':>9} {'process':>8}"
    print(f"{head} {'target':>7} {'peak MiB':>9} {'target':>7}")
    for name, path, pattern, world, values, seconds, memory in CASES:
        r = best_of(json.dumps([path, pattern, world, values]))
        print(
            f"{name:42} {r['events']:>11,.0f} {r['expand']:7.3f} {r['rules']:7.3f} "
            f"{r['contracts']:9.3f} {r['process']:8.3f} {seconds or '-':>7} "
            f"{r['peak'] / 2**20:9,.0f} {f'{memory >> 20:,}' if memory else '-':>7}"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(one(*json.loads(sys.argv[1]))))
    else:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        main()
