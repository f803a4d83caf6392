"""No input makes the front end fail; the whole of it is `python -m tests.fuzz.run`."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.fuzz import run
from tests.fuzz.inputs import KINDS, ROOT, write
from tests.fuzz.target import Answer, swallow

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 160
DEADLINE_S = 300


@pytest.mark.timeout(DEADLINE_S + 30)
def test_no_input_makes_the_front_end_fail() -> None:
    command = [sys.executable, "-m", "tests.fuzz.run", "--count", str(COUNT), "--jobs", "2"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_S, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    counts = {m[1]: int(m[2]) for m in re.finditer(r"^  (.+?) {2,}(\d+)$", done.stdout, re.M)}
    assert counts.pop("tracebacks, hangs, crashes") == 0
    counts = {name: number for name, number in counts.items() if ": " in name}
    assert sum(counts.values()) == COUNT
    assert {name.partition(": ")[0] for name in counts} == set(KINDS)
    assert {name.partition(": ")[2] for name in counts} == {str(answer) for answer in Answer}


def test_an_input_follows_from_its_number() -> None:
    assert [write(seed) for seed in range(16)] == [write(seed) for seed in range(16)]
    assert [write(seed)[0] for seed in range(8)] == list(KINDS)


def test_answers_are_what_they_say() -> None:
    texts = {
        b"\xff": Answer.NO_TEXT,
        b"pattern": Answer.NO_SYNTAX,
        b"pattern f():\n    fill(x, 1)\n": Answer.STATIC,
        b"pattern f(x: float32[4]):\n    send(x, dst=ranks.next)\n": Answer.FINDINGS,
        b"pattern f(x: float32[4]):\n    all_reduce(x)\n": Answer.CLEAN,
    }
    assert {text: swallow(text) for text in texts} == texts


def _fails(data: bytes) -> Answer:
    raise RecursionError(f"on {data.decode()}")


def _eats(data: bytes) -> Answer:
    raise MemoryError(len(bytearray(run.MEMORY + (1 << 20))))


def _dies(data: bytes) -> Answer:
    sys.exit(int(data) if data == b"1" else 0)


def _spins(data: bytes) -> Answer:
    while data == b"1":
        pass
    return Answer.CLEAN


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        (_fails, "seed 1: RecursionError: on 1 (test_fuzz.py:"),
        (_eats, "seed 1: MemoryError:"),
        (_dies, "seed 1: ended with 1"),
        (_spins, "seed 1: ended with -24"),
    ],
)
def test_what_goes_wrong_is_seen(
    target: Callable[[bytes], Answer], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "swallow", lambda data: target(data) if data == b"1" else Answer.CLEAN)
    monkeypatch.setattr(run, "write", lambda seed: ("kind", str(seed).encode()))
    if target is _spins:
        monkeypatch.setattr(run, "LONGEST_S", 1.0)
    totals, faults, _ = run.fuzz(range(3), jobs=1)
    assert [fault[: len(wanted)] for fault in faults] == [wanted]
    assert totals["kind: clean"] >= 1, "the rest goes on"
