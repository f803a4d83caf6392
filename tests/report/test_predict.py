"""Predictions beside measured times: which belong together, and how far off they are."""

from __future__ import annotations

import pytest

from commlang.plan import make_plan
from commlang.report.predict import predict
from commlang.report.run import Statement
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.topology import Compute, Level, Link, Machine

TEXT = """\
extern work(x: update float32[n])

pattern main(x: float32[n], y: float32[n], n = 1000):
    scale(y, 2)
    work(y)
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
"""
MACHINE = Machine(
    name="toy",
    links=(Link(name="wire", latency=1e-3, bandwidth=1e6),),
    levels=(Level(name="host", kind="switch", link="wire", size=(2,)),),
    compute=Compute(memory_bandwidth=8e6),
)


def statement(line: int, column: int, text: str, operation: str, seconds: float) -> Statement:
    return Statement(
        path="a.cl",
        line=line,
        column=column,
        text=text,
        operation=operation,
        ranks=2,
        calls=1,
        size=4000,
        median=seconds,
        max=seconds,
        algbw=None,
        busbw=None,
    )


def test_each_statement_is_set_beside_its_simulation() -> None:
    plan = make_plan(load_module(Source(TEXT, "a.cl")).symbols["main"], 2, schedule="program")
    both = "send(x, dst=ranks.next) | recv(y, src=ranks.prev)"
    measured = [
        statement(4, 5, "scale(y, 2)", "scale", 2e-3),
        statement(7, 9, both, "send+recv", 10e-3),
        statement(9, 5, "gone(y)", "gone", 1.0),
    ]
    found = predict(plan, MACHINE, measured, 4e-3)
    scale, block, gone = found.statements
    assert scale.predicted == pytest.approx(1e-3)
    assert scale.error == pytest.approx(-0.5)
    assert block.predicted == pytest.approx(1e-3 + 3999e-6)
    assert (block.line, block.text) == (7, both)
    assert (gone.predicted, gone.error) == (None, None)
    assert found.whole.predicted == pytest.approx(6e-3, rel=1e-3)
    assert found.whole.error == pytest.approx(0.5, rel=1e-2)
    assert found.error == pytest.approx(0.5, rel=1e-2), "in the middle of those that are known"
    assert (found.machine, found.without_cost) == ("toy", ["work"])
