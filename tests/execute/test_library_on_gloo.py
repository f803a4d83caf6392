"""Every pattern of the library on real ranks: its contracts hold, and see one wrong element."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlang.errors import PatternError
from commlang.expand.binding import is_tensor
from commlang.expand.values import take
from commlang.plan import make_plan
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.plan import Plan
    from commlang.resolve.modules import Definition

PROGRAM = Path(__file__).with_name("library_ranks.py")
ROOT = PROGRAM.parents[2]
LIBRARY = ROOT / "patterns"
WORLDS = (2, 3, 4, 5, 8)
SPOTS = 3
DEADLINE_S = 300

# Small sizes, odd where they may be; where a size must be a multiple of the world, one of 120.
SIZES = {
    "n": 37,
    "b": 2,
    "h": 30,
    "s": 120,
    "p": 240,
    "heads": 120,
    "d": 2,
    "micro": 4,
    "pieces": 5,
}
SIZES_OF = {
    "interleaved_1f1b": {"micro": None},  # as it is: a multiple of the world
    "ring_attention": {"s": 7, "h": 5},
    "halo_exchange": {"ny": 5, "nx": 3},
    "training_step_3d": {"h": 7},
}

POWERS_OF_TWO = (2, 4, 8)
RUNS_ON = {
    "recursive_doubling_all_gather": POWERS_OF_TWO,
    "recursive_doubling_all_reduce": POWERS_OF_TWO,
    "recursive_halving_reduce_scatter": POWERS_OF_TWO,
    "halve_and_double": POWERS_OF_TWO,
    "hierarchical_all_reduce": (2, 4, 8),
    "hierarchical_broadcast": (2, 4, 8),
    "halo_exchange": (2, 4, 8),
    "training_step_3d": (4, 8),
}
"""Worlds that the pattern's `require` allows, where not all."""

OTHER_DTYPES = {3: "bfloat16", 4: "int32"}
"""At this world, the library is also run with another dtype in the place of float32."""

NO_INTEGERS = {"ddp_step", "training_step_3d", "zero1_step"}
"""They take means, and gloo refuses those of integers."""

BLIND = {
    "barrier": "moves no data",
    "gpipe": "what it moves is made by externs and kept in temps",
    "one_f_one_b": "what it moves is made by externs and kept in temps",
    "interleaved_1f1b": "what it moves is made by externs and kept in temps",
    "moe": "its result is what an extern makes of the tokens; `route`, which moves them, has one",
    "ulysses": "its result is an extern's; `to_heads` and `to_sequence`, which move data, have one",
}
"""Patterns without an `ensure`, and why."""


def at_edge(plan: Plan, rank: int, index: tuple[int, ...]) -> bool:
    """Whether an element is a corner of a halo, or the halo of a side without a neighbour."""
    ny, nx, py, px = (plan.parameters[name] for name in ("ny", "nx", "py", "px"))
    (y, x), (i, j) = divmod(rank, px), index
    sides = {0: y > 0, ny + 1: y < py - 1}, {0: x > 0, nx + 1: x < px - 1}
    outer = [sides[0][i]] if i in sides[0] else []
    outer += [sides[1][j]] if j in sides[1] else []
    return outer not in ([], [True])


SILENT: dict[str, Callable[[Plan, int, tuple[int, ...]], bool]] = {
    "gather": lambda plan, rank, index: rank != 0,
    "reduce": lambda plan, rank, index: rank != 0,
    "binomial_reduce": lambda plan, rank, index: rank != 0,
    "send_recv": lambda plan, rank, index: rank != 1,
    "isend_irecv": lambda plan, rank, index: rank != 1,
    "halo_exchange": at_edge,
}
"""Elements (plan, rank, index) of which a contract says nothing: other ranks than the root's."""

AGREEMENT = {"tensor_parallel_layer": 1, "zero1_step": 1}
"""Contracts that say only that all ranks have rank 0's values: if those are wrong, all others are
named instead, so that an element of another rank is changed."""


def exported(folder: Path) -> list[Definition]:
    """All patterns of a folder's files that others can use."""
    modules = [load_module(Source.read(path)) for path in sorted(folder.rglob("*.cl"))]
    found = [module.symbols[name] for module in modules for name in module.exported]
    return [definition for definition in found if isinstance(definition.node, ast.Pattern)]


def name_of(definition: Definition) -> str:
    """`main` patterns go by their file's name."""
    name = definition.node.name
    return Path(definition.module.source.path).stem if name == "main" else name


def values_for(definition: Definition, world: int) -> dict[str, Any]:
    name = name_of(definition)
    wanted = SIZES | SIZES_OF.get(name, {})
    params = [p for p in definition.node.params if not is_tensor(p)]
    values: dict[str, Any] = {n: wanted[n] for p in params if wanted.get(n := p.target.id)}
    # Some ranks have nothing for one another.
    if any(p.target.id == "counts" for p in params):
        values["counts"] = [[5 * ((s + 2 * d) % 3) for d in range(world)] for s in range(world)]
    return values


def promised(definition: Definition) -> list[str]:
    """The tensors of whose values at the end the contracts speak."""
    tensors = {p.target.id for p in definition.node.params if is_tensor(p)}
    contracts = [s for s in definition.node.body if isinstance(s, ast.Ensure)]
    old = {
        node
        for contract in contracts
        for call in walk(contract)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "old"
        for node in walk(call.args[0])
    }
    names = {n.id for c in contracts for n in walk(c) if isinstance(n, ast.Name) and n not in old}
    return sorted(names & tensors)


def spots(plan: Plan, chosen: random.Random) -> list[tuple[int, str, int]]:
    """Elements for a contract to find wrong: (rank, tensor, element)."""
    name, program = name_of(plan.definition), plan.program()
    silent = SILENT.get(name, lambda plan, rank, index: False)
    found: list[tuple[int, str, int]] = []
    names = promised(plan.definition)
    while names and len(found) < SPOTS:
        tensor = chosen.choice(names)
        rank = chosen.randrange(AGREEMENT.get(name, 0), plan.world)
        shape = tuple(int(d) for d in take(program.tensors[tensor], rank).shape)
        if prod(shape):
            index = tuple(chosen.randrange(d) for d in shape)
            if not silent(plan, rank, index):
                found.append((rank, tensor, flat(index, shape)))
    return found


def flat(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    place = 0
    for at, dim in zip(index, shape, strict=True):
        place = place * dim + at
    return place


def unflat(element: int, shape: tuple[int, ...]) -> list[int]:
    index: list[int] = []
    for dim in reversed(shape):
        element, at = divmod(element, dim)
        index.insert(0, at)
    return index


def with_dtype(folder: Path, dtype: str) -> None:
    """The library with another dtype in the place of float32."""
    for path in LIBRARY.rglob("*.cl"):
        text = path.read_text(encoding="utf-8").replace("float32[", f"{dtype}[")
        copy = folder / path.relative_to(LIBRARY)
        copy.parent.mkdir(exist_ok=True)
        # So that the copy is imported, and not the library's own.
        copy.write_text(re.sub(r"^from (?=\w+\.)", "from ..", text, flags=re.MULTILINE))


def has_dtype(definition: Definition, dtype: str) -> bool:
    """Whether the pattern has a tensor of that dtype, and gloo can run it."""
    kinds = {p.type.name for p in definition.node.params if p.type}
    return dtype in kinds and not (dtype == "int32" and name_of(definition) in NO_INTEGERS)


def run(world: int, plans: list[Plan], chosen: random.Random) -> list[tuple[Plan, Any, Any]]:
    """Run plans on ranks that are started once; with the changed elements and what was found."""
    cases = [
        {
            "file": plan.path,
            "pattern": plan.pattern,
            "values": plan.values,
            "spots": spots(plan, chosen),
            "seed": chosen.randrange(1000),
        }
        for plan in plans
    ]
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
    results = json.loads(done.stdout.splitlines()[-1])
    return [(p, c["spots"], r) for p, c, r in zip(plans, cases, results, strict=True)]


def check(plan: Plan, changed: list[tuple[int, str, int]], ranks: list[Any]) -> None:
    """Contracts held on all ranks, and found each changed element, its value and the right one."""
    case = f"{plan.path} {plan.pattern} at {plan.world} ranks, {plan.parameters}"
    for rank, told in enumerate(ranks):
        assert all(found is None for found in told["right"]), (case, rank, told["right"])
    for number, (rank, tensor, element) in enumerate(changed):
        shape = tuple(int(d) for d in take(plan.program().tensors[tensor], rank).shape)
        before, after = ranks[rank]["wrong"][number][0]
        found = [f for told in ranks for f in told["wrong"][number][1] if f is not None]
        wanted = [rank, tensor, unflat(element, shape), before, after]
        assert wanted in [f[:5] for f in found], (case, wanted, found)


@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("world", WORLDS)
def test_contracts_hold_and_see_one_wrong_bit(world: int, tmp_path: Path) -> None:
    definitions = exported(LIBRARY)
    if world in OTHER_DTYPES:
        with_dtype(tmp_path, OTHER_DTYPES[world])
        definitions += [d for d in exported(tmp_path) if has_dtype(d, OTHER_DTYPES[world])]
    plans: list[Plan] = []
    for definition in definitions:
        if world in RUNS_ON.get(name_of(definition), WORLDS):
            plans.append(make_plan(definition, world, values_for(definition, world)))
        else:
            with pytest.raises(PatternError):
                make_plan(definition, world, values_for(definition, world))
    for plan, changed, ranks in run(world, plans, random.Random(world)):
        assert bool(changed) == (name_of(plan.definition) not in BLIND)
        check(plan, changed, ranks)


def test_patterns_without_a_contract_are_those_whose_result_is_not_theirs() -> None:
    without = {name_of(d) for d in exported(LIBRARY) if not promised(d)}
    assert without == BLIND.keys()
