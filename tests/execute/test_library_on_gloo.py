"""Every pattern of the library on real ranks: its contracts hold, and see one wrong element."""

from __future__ import annotations

import json
import os
import random
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

VARIANTS: dict[int, dict[str, Any]] = {
    3: {"dtype": "bfloat16"},
    4: {"dtype": "int32"},
    5: {"op": "max"},
    8: {"dtype": "bfloat16", "op": "product"},
}
"""At these worlds, patterns with such parameters run with these values too."""
NO_INTEGERS = {"ddp_step", "training_step_3d", "zero1_step"}
"""They take means, and gloo refuses those of integers."""

BOUND = {"gpipe", "one_f_one_b", "interleaved_1f1b"}
"""Patterns whose externs are bound to Python functions: contracts call them again. Elsewhere they
only take their time, and contracts on what they write are not checked."""

BLIND = {"barrier": "moves no data"}
"""Patterns without an `ensure`, and why."""


def foreign_part(plan: Plan, rank: int, tensor: str, index: tuple[int, ...]) -> bool:
    """Whether an element of a vector lies outside of the part that is the rank's."""
    least, longer = divmod(plan.parameters["n"], plan.world)
    start = rank * least + min(rank, longer)
    return not start <= index[0] < start + least + (rank < longer)


SILENT: dict[str, Callable[[Plan, int, str, tuple[int, ...]], bool]] = {
    "gather": lambda plan, rank, tensor, index: rank != 0,
    "reduce": lambda plan, rank, tensor, index: rank != 0,
    "binomial_reduce": lambda plan, rank, tensor, index: rank != 0,
    "training_step_3d": lambda plan, rank, tensor, index: tensor in ("y", "dx"),
    "tensor_parallel_layer": lambda plan, rank, tensor, index: tensor == "y",
    "sequence_parallel_layer": lambda plan, rank, tensor, index: tensor == "y",
    "ddp_step": lambda plan, rank, tensor, index: tensor == "grad",
    "fsdp_step": lambda plan, rank, tensor, index: tensor == "grad",
    "zero1_step": lambda plan, rank, tensor, index: (
        tensor == "grad" and foreign_part(plan, rank, tensor, index)
    ),
}
"""Elements (plan, rank, tensor, index) of which a contract says nothing, as those beside the
root's and those that are nobody else's, or of which it cannot be checked what it says, as an
extern makes them that only takes its time."""


def exported(folder: Path) -> list[Definition]:
    """All patterns of a folder's files that others can use."""
    modules = [load_module(Source.read(path)) for path in sorted(folder.rglob("*.cl"))]
    found = [module.symbols[name] for module in modules for name in module.exported]
    return [definition for definition in found if isinstance(definition.node, ast.Pattern)]


def name_of(definition: Definition) -> str:
    """`main` patterns go by their file's name."""
    name = definition.node.name
    return Path(definition.module.source.path).stem if name == "main" else name


def parameters(definition: Definition) -> set[str]:
    return {p.target.id for p in definition.node.params if not is_tensor(p)}


def values_for(definition: Definition, world: int) -> dict[str, Any]:
    names = parameters(definition)
    sizes = SIZES | SIZES_OF.get(name_of(definition), {})
    values: dict[str, Any] = {n: size for n, size in sizes.items() if n in names and size}
    if "counts" in names:  # some ranks have nothing for one another
        values["counts"] = [[5 * ((s + 2 * d) % 3) for d in range(world)] for s in range(world)]
    return values


def all_values(definition: Definition, world: int) -> list[dict[str, Any]]:
    """The values with which a pattern runs in a world: small ones, and those of its variant."""
    values = values_for(definition, world)
    wanted = VARIANTS.get(world, {})
    known = {n: value for n, value in wanted.items() if n in parameters(definition)}
    if known.get("dtype") == "int32" and name_of(definition) in NO_INTEGERS:
        known = {}
    return [values, values | known] if known else [values]


def promised(definition: Definition) -> list[str]:
    """The tensors of whose values at the end the contracts speak, be it by way of a `let`."""
    body = definition.node.body
    lets = {s.target.id: s.value for s in body if isinstance(s, ast.Let | ast.LetFunction)}
    tensors = {p.target.id for p in definition.node.params if is_tensor(p)}
    names: set[str] = set()
    waiting: list[ast.Node] = [s for s in body if isinstance(s, ast.Ensure)]
    while waiting:
        fresh = at_the_end(waiting.pop()) - names
        names |= fresh
        waiting += [lets[name] for name in fresh & lets.keys()]
    return sorted(names & tensors)


def at_the_end(node: ast.Node) -> set[str]:
    """The names in an expression that stand outside of `old(…)`."""
    calls = [n for n in walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    old = [n for call in calls if name_is(call.func, "old") for n in walk(call)]
    return {n.id for n in walk(node) if isinstance(n, ast.Name) and n not in old}


def name_is(node: ast.Node, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def spots(plan: Plan, chosen: random.Random) -> list[tuple[int, str, int]]:
    """Elements for a contract to find wrong: (rank, tensor, element)."""
    name, program = name_of(plan.definition), plan.program()
    silent = SILENT.get(name, lambda plan, rank, tensor, index: False)
    found: list[tuple[int, str, int]] = []
    names = promised(plan.definition)
    while names and len(found) < SPOTS:
        tensor = chosen.choice(names)
        rank = chosen.randrange(plan.world)
        shape = tuple(int(d) for d in take(program.tensors[tensor], rank).shape)
        if prod(shape):
            index = tuple(chosen.randrange(d) for d in shape)
            if not silent(plan, rank, tensor, index):
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


def run(world: int, plans: list[Plan], chosen: random.Random) -> list[tuple[Plan, Any, Any]]:
    """Run plans on ranks that are started once; with the changed elements and what was found."""
    cases = [
        {
            "file": plan.path,
            "pattern": plan.pattern,
            # Either order in which the Executor may take a pattern, each in some of the worlds.
            "schedule": "overlap" if world % 2 else "program",
            "values": plan.values,
            "spots": spots(plan, chosen),
            "seed": chosen.randrange(1000),
            "bound": name_of(plan.definition) in BOUND,
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
@pytest.mark.parametrize(
    # By default one world for each order in which the Executor may take a pattern.
    "world",
    [world if world in (3, 4) else pytest.param(world, marks=pytest.mark.slow) for world in WORLDS],
)
def test_contracts_hold_and_see_one_wrong_bit(world: int) -> None:
    plans: list[Plan] = []
    for definition in exported(LIBRARY):
        for values in all_values(definition, world):
            if world in RUNS_ON.get(name_of(definition), WORLDS):
                plans.append(make_plan(definition, world, values))
            else:
                with pytest.raises(PatternError):
                    make_plan(definition, world, values)
    for plan, changed, ranks in run(world, plans, random.Random(world)):
        assert bool(changed) == (name_of(plan.definition) not in BLIND)
        check(plan, changed, ranks)


def test_patterns_without_a_contract_are_those_whose_result_is_not_theirs() -> None:
    without = {name_of(d) for d in exported(LIBRARY) if not promised(d)}
    assert without == BLIND.keys()
