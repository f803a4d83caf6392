"""Every pattern of the library as a script on real ranks: the same values as by the Executor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlang.export import export_python
from commlang.plan import make_plan
from tests.execute.test_library_on_gloo import (
    LIBRARY,
    RUNS_ON,
    WORLDS,
    all_values,
    exported,
    name_of,
)

if TYPE_CHECKING:
    from commlang.plan import Plan

PROGRAM = Path(__file__).with_name("export_ranks.py")
ROOT = PROGRAM.parents[2]
DEADLINE_S = 300


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
        "file": plan.path,
        "pattern": plan.pattern,
        "values": plan.values,
        "script": export_python(plan),
        "function": name_of(plan.definition),
    }


@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("world", WORLDS)
def test_a_script_leaves_what_the_executor_leaves(world: int) -> None:
    plans = [
        make_plan(definition, world, values)
        for definition in exported(LIBRARY)
        for values in all_values(definition, world)
        if world in RUNS_ON.get(name_of(definition), WORLDS)
    ]
    for plan, ranks in zip(plans, run(world, list(map(case_of, plans))), strict=True):
        assert not any(ranks), (plan.path, plan.pattern, plan.values, ranks)
