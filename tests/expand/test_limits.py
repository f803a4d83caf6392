"""Patterns that ask for far too much are refused at their line, soon and in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHILD = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (40, 40))
from commlang.errors import PatternError
from commlang.program import build
from tests.expand.conftest import definition_of
for text in sys.stdin.read().split("\\n---\\n"):
    try:
        print("fine", len(build(definition_of(text), 4)))
    except PatternError as error:
        (found,) = error.diagnostics
        source, span = found.labels[0].source, found.labels[0].span
        print(found.code, source.text[span.start:span.end].split("\\n")[0])
"""

CASES = {
    "for i in range(10 ** 9):\n    pass": "CL120 for i in range(10 ** 9)",
    "for i in range(1 << 61):\n    barrier()": "CL120 for i in range(1 << 61)",
    "for i in range((rank + 1) << 59):\n    pass": "CL120 for i in range((rank + 1) << 59)",
    "for a in range(10000):\n    for b in range(10000):\n        pass": (
        "CL120 for b in range(10000)"
    ),
    "parallel for i in range(10 ** 8):\n    send(x, dst=ranks.next)": "CL120 parallel",
    "for c in x.chunks(10 ** 9):\n    fill(c, 0)": "CL120 for c in x.chunks(10 ** 9)",
    "let l = [i for i in range(10 ** 9)]": "CL120 for i in range(10 ** 9)",
    "let l = [0 for i in range(10 ** 5) for j in range(10 ** 5)]": "CL120 for j in range(10 ** 5)",
    "fill(x, sum(range(10 ** 9)))": "CL110 sum(range(10 ** 9))",
    "fill(x, max(range(10 ** 9)))": "CL110 max(range(10 ** 9))",
    "if all(i > 0 for i in range(10 ** 7)):\n    pass": "CL110 all(i > 0 for i in range(10 ** 7))",
    "if rank in range(0, 10 ** 15, 2):\n    fill(x, 1)": "fine 2",
    "group g = range(10 ** 9)": "CL110 group g = range(10 ** 9)",
    "fill(x, (1 << 61) * (rank + 2))": "CL110 (1 << 61) * (rank + 2)",
    "fill(x, (rank + 3) ** 41)": "CL110 (rank + 3) ** 41",
    "fill(x, 7 ** 7 ** 7)": "CL110 7 ** 7 ** 7",
    "fill(x, sum((1 << 58) + i for i in range(32)))": "CL110 sum((1 << 58) + i for i in range(32))",
    "fill(x, sum([1 << 61, (1 << 61) + rank]))": "CL110 sum([1 << 61, (1 << 61) + rank])",
    "temp t: float32[0 - rank]": "CL112 0 - rank",
    "temp t: float32[1 << 40, 1 << 40]": "CL110 temp t: float32[1 << 40, 1 << 40]",
    "let f(a) = a + a\n" + "".join(
        f"let f{i}(a) = f{i - 1 if i else ''}(a) + f{i - 1 if i else ''}(a)\n" for i in range(30)
    ) + "fill(x, f29(1))": "CL120 f(a)",
    "pattern main(x: float32[n], d = 60, n = 4):\n    if d > 0:\n        main(x, d=d - 1)\n"
    "        main(x, d=d - 1)": "CL120 main(x, d=d - 1)",
    "pattern main(x: float32[n], d = 0, n = 4):\n    main(x, d=d + 1)": "CL125 main(x, d=d + 1)",
    "pattern main(x: float32[n], t: int[w, w] = "
    "[[i + j for i in range(10 ** 5)] for j in range(10 ** 5)], n = 4):\n    pass": (
        "CL120 for i in range(10 ** 5)"
    ),
    "pattern main(x: float32[n, n], n = 1 << 40):\n    pass": "CL110 x: float32[n, n]",
}  # fmt: skip


def test_each_is_refused_where_it_stands() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input="\n---\n".join(CASES),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == list(CASES.values())


@pytest.mark.parametrize("statement", ["pass", "let a = [j for j in range(3)]", "group g = ranks"])
def test_a_loop_without_events_leaves_nothing_behind(statement: str) -> None:
    from commlang.program import build
    from tests.expand.conftest import definition_of

    program = build(definition_of(f"for i in range(100000):\n    {statement}"), 4)
    assert len(program) == 0
