"""Patterns as scripts on real ranks leave bit for bit what the Executor leaves.

The whole library, all right examples of docs/language.md, corners.cl, and random patterns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlang.errors import PatternError
from commlang.export import export_python
from commlang.plan import make_plan
from commlang.resolve.modules import load_module
from commlang.source import Source
from tests.differential.generate import Pattern
from tests.execute.test_library_on_gloo import (
    LIBRARY,
    RUNS_ON,
    WORLDS,
    all_values,
    exported,
    name_of,
)
from tests.test_language_docs import RIGHT

if TYPE_CHECKING:
    from commlang.plan import Plan

PROGRAM = Path(__file__).with_name("export_ranks.py")
CORNERS = Path(__file__).with_name("corners.cl")
ROOT = PROGRAM.parents[2]
DEADLINE_S = 300
SEEDS = range(1000, 1250)


def run(world: int, cases: list[dict[str, Any]]) -> list[list[str]]:
    """Run cases on ranks that are started once; for each, what differs on each rank."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        input=json.dumps({"world": world, "cases": cases}),
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def case_of(plan: Plan) -> dict[str, Any]:
    return {
        "plan": json.loads(plan.to_json()),
        "script": export_python(plan),
        "function": name_of(plan.definition),
    }


def check(world: int, plans: list[Plan]) -> None:
    cases = [case_of(plan) for plan in plans]
    for plan, ranks in zip(plans, run(world, cases), strict=True):
        assert not any(ranks), (plan.path, plan.pattern, plan.values, ranks)


def library(world: int, *, variants: bool) -> list[Plan]:
    """The library in a world; if asked for, also with other dtypes and ops."""
    return [
        make_plan(definition, world, values)
        for definition in exported(LIBRARY)
        for values in all_values(definition, world)[: 1 + variants]
        if world in RUNS_ON.get(name_of(definition), WORLDS)
    ]


def corners() -> list[Plan]:
    module = load_module(Source.read(CORNERS))
    plans = [make_plan(module.symbols[name], 4) for name in module.exported]
    return [*plans, make_plan(module.symbols["tree"], 4, {"op": "sum"})]


def examples() -> list[Plan]:
    """The right examples of the page on the language; gloo has no premul_sum."""
    plans: list[Plan] = []
    for example in RIGHT:
        if example.world == 4 and "import" not in example.text and "premul" not in example.text:
            module = load_module(Source(example.text, f"example_{len(plans)}.cl"))
            plans += [make_plan(module.symbols[name], 4) for name in module.exported]
    return plans


@pytest.mark.timeout(DEADLINE_S)
def test_library_examples_and_corners_on_4_ranks() -> None:
    plans = [*library(4, variants=False), *corners(), *examples()]
    assert len(plans) > 90
    check(4, plans)


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("world", WORLDS)
def test_the_library_on_all_worlds(world: int) -> None:
    check(world, library(world, variants=True))


@pytest.mark.slow
@pytest.mark.timeout(2 * DEADLINE_S)
def test_random_patterns() -> None:
    plans: defaultdict[int, list[Plan]] = defaultdict(list)
    for seed in SEEDS:
        pattern = Pattern(seed)
        module = load_module(Source(pattern.text, f"random_{seed}.cl"))
        try:
            plans[pattern.world].append(make_plan(module.symbols["main"], pattern.world))
        except PatternError:  # most are made to be wrong
            continue
    assert sum(map(len, plans.values())) > len(SEEDS) // 3
    for world, some in plans.items():
        check(world, some)
