"""Parse, expand, match and decide deadlock-freedom, at sizes where other tools stop.

Prints a table; each row is the best of three runs in a process of its own, with the peak of its
resident memory. Run it on a quiet machine: `python benchmarks/frontend.py`.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from itertools import pairwise

PATTERNS = {
    "ring": ("point_to_point/ring_all_reduce.cl", "ring_all_reduce"),
    "1f1b": ("pipeline/one_f_one_b.cl", "one_f_one_b"),
}

# name, pattern, world, parameters, target seconds, target bytes (None: none set)
CASES = (
    ("ring all-reduce, 256 ranks", "ring", 256, {}, 0.3, None),
    ("ring all-reduce, 1,024 ranks", "ring", 1024, {}, 3.0, 2 << 30),
    ("ring all-reduce, 1,415 ranks", "ring", 1415, {}, 4.0, 3 << 30),
    ("1F1B, 256 stages, 1,024 microbatches", "1f1b", 256, {"micro": 1024}, 2.0, None),
)


def one(pattern: str, world: int, values: dict[str, int]) -> dict[str, float]:
    """Time one case in this process, three times; the best, with its parts."""
    import resource
    import time

    from commlang import resources
    from commlang.checks import check_program
    from commlang.program import build
    from commlang.resolve.check import check_all
    from commlang.resolve.modules import load_module
    from commlang.source import Source

    path, name = PATTERNS[pattern]
    best: dict[str, float] = {}
    for _ in range(3):
        marks = [time.perf_counter()]
        module = load_module(Source.read(resources.patterns_dir() / path))
        assert not check_all(module)
        marks.append(time.perf_counter())
        program = build(module.symbols[name], world, values)
        marks.append(time.perf_counter())
        assert check_program(program) == []
        marks.append(time.perf_counter())
        parts = dict(zip(("parse", "expand", "decide"), _differences(marks), strict=True))
        total = marks[-1] - marks[0]
        if not best or total < best["total"]:
            best = {**parts, "total": total, "events": len(program)}
        del program
    best["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return best


def _differences(marks: list[float]) -> list[float]:
    return [b - a for a, b in pairwise(marks)]


def main() -> None:
    """Run every case in its own process and print the table."""
    cores = len(os.sched_getaffinity(0))
    print(f"# {cores} cores ({platform.machine()}), Python {platform.python_version()}")
    print("# seconds, best of three; parse includes imports of patterns and static checks,")
    print("# decide is matching, agreement, overlaps and deadlock-freedom")
    header = f"{'case':38} {'events':>12} {'parse':>7} {'expand':>7} {'decide':>7} {'total':>7}"
    print(f"{header} {'target':>7} {'peak MiB':>9} {'target':>7}")
    for name, pattern, world, values, seconds, memory in CASES:
        job = json.dumps([pattern, world, values])
        out = subprocess.run(
            [sys.executable, __file__, job], check=True, capture_output=True, text=True
        )
        r = json.loads(out.stdout)
        limit = f"{memory >> 20:,}" if memory else "-"
        print(
            f"{name:38} {r['events']:>12,.0f} {r['parse']:7.3f} {r['expand']:7.3f} "
            f"{r['decide']:7.3f} {r['total']:7.3f} {seconds:7.1f} "
            f"{r['peak'] / 2**20:9,.0f} {limit:>7}"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        pattern, world, values = json.loads(sys.argv[1])
        print(json.dumps(one(pattern, world, values)))
    else:
        main()
