"""Faults in the shipped patterns are seen; the whole of it is `python -m tests.mutation.run`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from commlang.resolve.modules import load_module
from commlang.source import Source
from tests.execute.test_library_on_gloo import ROOT
from tests.mutation.faults import KINDS, Mutant, mutants
from tests.mutation.run import report
from tests.mutation.trial import Contract, Effect, Result

EVERY = 80
DEADLINE_S = 300

TEXT = """\
pattern main(x: float32[n], y: float32[n], n = 8, op = sum):
    ensure y == old(x) @ 0
    let kept = n // 2
    temp inbox: float32[n]
    mesh outer = 2, inner = 2
    for s in range(world - 1):
        parallel:
            send(x, dst=ranks.next)
            recv(inbox, src=(rank - 1) % world, tag=0)
        inbox -> y, op=op
    if rank < 2:
        work = async broadcast(x[:kept], src=inner[0], group=inner)
        wait(work)
    x @ 0 -> y @ 1
    fill(x, min(1, n))
"""


def _lines(kind: str) -> list[str]:
    """What the mutants of a kind have in place of the line that was changed."""
    definition = load_module(Source(TEXT, "x.cl")).symbols["main"]
    found = [m for m in mutants(definition) if m.kind == kind]
    return [m.text.splitlines()[m.line - 1].strip() for m in found]


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        (
            "change a tag",
            [
                "send(x, dst=ranks.next, tag=1)",
                "recv(inbox, src=(rank - 1) % world, tag=0 + 1)",
                "x @ 0 -> y @ 1, tag=rank",
            ],
        ),
        (
            "change a root",
            [
                "work = async broadcast(x[:kept], src=(inner[0] + 1) % world, group=inner)",
                "work = async broadcast(x[:kept], src=rank, group=inner)",
            ],
        ),
        (
            "change a group",
            [
                "work = async broadcast(x[:kept], src=inner[0], group=outer)",
                "work = async broadcast(x[:kept], src=inner[0], group=ranks)",
            ],
        ),
        ("change a reduce op", ["inbox -> y, op=max"]),
        ("change a dtype", ["temp inbox: float64[n]"]),
        ("remove a wait", ["pass"]),
        ("block instead of async", ["broadcast(x[:kept], src=inner[0], group=inner)"]),
        ("drop parallel", ["sequence:"]),
        (
            "swap send and recv",
            ["recv(x, src=ranks.next)", "send(inbox, dst=(rank - 1) % world, tag=0)"],
        ),
        ("drop an accumulation", ["inbox -> y"]),
        ("turn an arrow round", ["y -> inbox, op=op", "y @ 1 -> x @ 0", "x @ 1 -> y @ 0"]),
        ("add instead of copy", ["x @ 0 -> y @ 1, op=sum"]),
        ("wrong initial value", ["fill(x, min(1, n) + 1)"]),
        ("wrong condition", ["if rank <= 2:", "if not (rank < 2):"]),
        ("min for max", ["fill(x, max(1, n))"]),
        (
            "loop bound off by one",
            ["for s in range(world - 1 - 1):", "for s in range(world - 1 + 1):"],
        ),
    ],
)
def test_a_kind_of_fault_is_what_it_says(kind: str, lines: list[str]) -> None:
    assert _lines(kind) == lines


def test_what_was_meant_stays() -> None:
    definition = load_module(Source(TEXT, "x.cl")).symbols["main"]
    found = mutants(definition)
    assert len({m.text for m in found}) == len(found)
    assert len({m.kind for m in found}) >= 20
    assert len(KINDS) >= 15
    for mutant in found:
        assert "    ensure y == old(x) @ 0\n" in mutant.text
        assert mutant.text != TEXT


def _result(effect: Effect, *codes: str, contract: Contract = Contract.WHOLE) -> Result:
    return Result("ring", Mutant("change a tag", 1, "send(x, dst=0)"), contract, effect, codes)


def test_survivors_are_told() -> None:
    killed = [_result(Effect.CHANGED, "CL201")] * 99
    unmoved = [_result(Effect.SAME), _result(Effect.EXTERNS), _result(Effect.REFUSED, "CL104")]
    survived = _result(Effect.CHANGED)
    assert report([*killed, *unmoved], 1.0)[1]
    assert report([*killed, survived, *unmoved], 1.0)[1]
    text, enough = report([*killed, survived, survived], 1.0)
    assert not enough
    assert "killed of the changed: 98.02%" in text
    assert text.count("ring:1: change a tag: `send(x, dst=0)`") == 2
    assert "101 changed what a pattern does, 99 of them were killed" in text
    partial = [_result(Effect.CHANGED, contract=Contract.PARTIAL)] * 2
    assert not report([*killed, *partial], 1.0)[1]


@pytest.mark.timeout(DEADLINE_S + 30)
def test_faults_in_the_library_are_seen() -> None:
    command = [sys.executable, "-m", "tests.mutation.run", "--every", str(EVERY)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_S, cwd=ROOT, check=False
    )
    shown = done.stdout
    assert done.returncode == 0, shown[-4000:] + done.stderr[-4000:]
    assert done.stderr == ""
    rows = re.findall(r"^  all +([\d,]+) +([\d,]+) +([\d,]+)", shown, re.M)
    assert sum(int(changed) for _, _, changed in rows) >= 10
