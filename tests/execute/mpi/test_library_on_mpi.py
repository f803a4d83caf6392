"""Every pattern of the library on ranks of MPI, as test_library_on_gloo.py has it on gloo."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from commlang.execute.mpi.launch import launch_mpi
from commlang.execute.options import LaunchOptions
from commlang.plan import make_plan
from tests.execute.library_ranks import Case, Spot, narrator, work
from tests.execute.test_library_on_gloo import (
    BOUND,
    LIBRARY,
    RUNS_ON,
    WORLDS,
    all_values,
    check,
    exported,
    name_of,
    spots,
)

DEADLINE_S = 300


@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("world", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_contracts_hold_and_see_one_wrong_bit(world: int) -> None:
    chosen = random.Random(world)
    plans = [
        make_plan(definition, world, values)
        for definition in exported(LIBRARY)
        if world in RUNS_ON.get(name_of(definition), WORLDS)
        for values in all_values(definition, world)
    ]
    changed = [spots(plan, chosen) for plan in plans]
    cases: list[Case] = [
        (
            plan,
            [Spot(*spot) for spot in found],
            chosen.randrange(1000),
            name_of(plan.definition) in BOUND,
        )
        for plan, found in zip(plans, changed, strict=True)
    ]
    options = LaunchOptions(nproc_per_node=world)
    results = launch_mpi(work, (cases, "mpi"), options, narrator=narrator(cases))
    ranks = json.loads(json.dumps(results))  # the form that `check` takes
    assert len(plans) > 45
    for number, plan in enumerate(plans):
        told: list[Any] = [rank[number] for rank in ranks]
        check(plan, changed[number], told)
