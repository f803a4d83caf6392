"""Every library pattern with a contract: it holds, and one wrong element breaks it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from commlang.errors import PatternError
from commlang.execute.contract import ContractResult, check_contracts, needs_final
from commlang.execute.fill import Filler
from commlang.expand.run import parameter_names
from commlang.operations import Access
from commlang.plan import Plan, make_plan
from commlang.program.assemble import ACCESSES
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source
from commlang.syntax import ast
from tests.execute.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program import Program

PATTERNS = Path(__file__).parents[2] / "patterns"
WORLDS, MORE_WORLDS = (2, 3, 4, 8), (1, 5, 6)
SMALL = {"n": 13, "p": 24, "b": 2, "ny": 4, "nx": 5, "heads": 120, "d": 2, "layers": 2}
DIMS = {
    "to_heads": {"s": 2},
    "to_sequence": {"s": 2},
    "route": {"h": 3},
    "ring_attention": {"s": 3, "h": 2},
    "training_step_3d": {"h": 4},
    "tensor_parallel_layer": {"s": 3, "h": 30},
    "sequence_parallel_layer": {"s": 120, "h": 30},
}

Finals = dict[tuple[int, str], torch.Tensor]
Target = tuple[int, str]

ROOT_ONLY = ("reduce", "gather", "binomial_reduce")
"""Only rank 0's data are promised."""
PROMISED = {
    "gpipe": ("x",),
    "one_f_one_b": ("x",),
    "interleaved_1f1b": ("x",),
    "ddp_step": ("weights", "batch"),
    "fsdp_step": ("shard", "act"),
    "tensor_parallel_layer": ("x",),
    "sequence_parallel_layer": ("full",),
    "training_step_3d": ("x", "grad"),
    "zero1_step": ("weights",),
}
"""The tensors whose contract can be checked, where externs make others and only take their time."""


def _definitions() -> list[Definition]:
    found: list[Definition] = []
    for path in sorted(PATTERNS.rglob("*.cl")):
        module = load_module(Source.read(path))
        for name in module.exported:
            definition = module.symbols[name]
            if any(isinstance(s, ast.Ensure) for s in definition.node.body):
                found.append(definition)
    return found


DEFINITIONS = {f"{Path(d.module.source.path).stem}-{d.node.name}": d for d in _definitions()}


def _plan(definition: Definition, world: int) -> Plan | None:
    """A plan of small size; None if the pattern does not take this world."""
    names = parameter_names(definition.node)
    values: dict[str, Any] = {k: v for k, v in SMALL.items() if k in names}
    values |= DIMS.get(definition.node.name, {})
    if "counts" in names:
        values["counts"] = [[1 + (s + 2 * d) % 3 for d in range(world)] for s in range(world)]
    try:
        return make_plan(definition, world, values)
    except PatternError as error:
        if [d.code for d in error.diagnostics] != ["CL124"]:  # a `require`
            raise
        return None


def _check(plan: Plan, filler: Filler, finals: Finals) -> list[ContractResult]:
    """All contracts on all ranks, each rank given no more than what it would be sent."""
    shared = needs_final(plan.definition)

    def final_on(checking: int) -> Callable[[int, str], torch.Tensor]:
        def final(rank: int, name: str) -> torch.Tensor:
            assert rank == checking or name in shared
            return finals[rank, name]

        return final

    results: list[ContractResult] = []
    for rank in range(plan.world):
        results += check_contracts(plan, rank, filler.initial, final_on(rank))
    return results


def _written(program: Program) -> set[Target]:
    """The tensor parameters that some event of a rank writes."""
    owner: dict[tuple[int, int], str] = {}
    for name, view in program.tensors.items():
        buffers = np.broadcast_to(view.buffer, program.world).tolist()
        owner |= dict.fromkeys(enumerate(buffers), name)
    found: set[Target] = set()
    for row in range(len(program)):
        rank, first = int(program.rank[row]), int(program.first[row])
        for i in range(first, first + int(program.count[row])):
            name = owner.get((rank, int(program.operands.buffer[i])))
            if name and ACCESSES[program.operands.access[i]] is not Access.READ:
                found.add((rank, name))
    return found


def _promised(stem: str, plan: Plan) -> list[Target]:
    """The tensors of ranks in which every element, or for halos many, are promised something."""
    if stem in PROMISED:
        return [(rank, name) for rank in range(plan.world) for name in PROMISED[stem]]
    targets = sorted(_written(plan.program()))
    if stem in ROOT_ONLY:
        return [t for t in targets if t[0] == 0 and t[1] != "part"]
    return targets


def _spoil(stem: str, tensor: torch.Tensor, chance: random.Random) -> tuple[int, ...]:
    """Make one element wrong, at a place of which the contract speaks; returns its index."""
    margin = int(stem == "halo_exchange")  # the rim is promised only where a neighbour is
    index = tuple(chance.randrange(margin, size - margin) for size in tensor.shape)
    tensor[index] = tensor[index] * 2 + 1
    return index


@pytest.mark.parametrize("key", DEFINITIONS)
@pytest.mark.parametrize("worlds", [WORLDS, pytest.param(MORE_WORLDS, marks=pytest.mark.slow)])
def test_it_holds_and_one_wrong_element_breaks_it(key: str, worlds: tuple[int, ...]) -> None:
    definition = DEFINITIONS[key]
    stem = key.split("-")[0]
    chance = random.Random(key)
    broken = 0
    for world in worlds:
        plan = _plan(definition, world)
        if plan is None:
            continue
        filler = Filler(plan, seed=world)
        finals = simulate(plan.program(), filler.initial)
        assert [str(r.failure) for r in _check(plan, filler, finals) if not r.ok] == []
        targets = [t for t in _promised(stem, plan) if finals[t].numel()]
        if not targets:
            continue
        rank, name = chance.choice(targets)
        index = _spoil(stem, finals[rank, name], chance)
        failures = [r.failure for r in _check(plan, filler, finals) if r.failure]
        assert (rank, name, index) in [(f.rank, f.tensor, f.index) for f in failures], failures
        assert all(f.wrong == 1 and f.got != f.expected for f in failures), failures
        broken += 1
    assert broken >= 2 or worlds is MORE_WORLDS, "too few worlds in which one can tell"


def test_these_are_the_patterns_that_promise_something() -> None:
    assert len(DEFINITIONS) >= 40
    known = {key.split("-")[0] for key in DEFINITIONS}
    assert known.issuperset([*ROOT_ONLY, *PROMISED, "halo_exchange"])


ALGORITHMS = ("ring_all_reduce", "recursive_doubling_all_reduce", "halving_doubling_all_reduce")


def _reduced(name: str, dtype: str, op: str, world: int) -> tuple[Plan, Filler, Finals]:
    """A library all-reduce in another dtype and with another op, run on its fill."""
    text = (PATTERNS / "point_to_point" / f"{name}.cl").read_text(encoding="utf-8")
    source = Source(text.replace("float32", dtype), f"{name}.cl")
    plan = make_plan(load_module(source).symbols[name], world, {"n": 21, "op": op})
    filler = Filler(plan, seed=0)
    return plan, filler, simulate(plan.program(), filler.initial)


WHOLE = ("int8", "uint8", "int64")
CASES = [
    *((d, op) for d in ("bfloat16", "float16", "float32") for op in ("sum", "product", "max")),
    *((d, op) for d in WHOLE for op in ("sum", "product", "min", "band", "bor", "bxor")),
]


# By default each case by one of the algorithms in turn.
TURNS = [
    pytest.param(name, *case, marks=[] if (i + j) % len(ALGORITHMS) == 0 else [pytest.mark.slow])
    for i, name in enumerate(ALGORITHMS)
    for j, case in enumerate(CASES)
]


@pytest.mark.parametrize(("name", "dtype", "op"), TURNS)
def test_a_reduction_has_the_same_bits_in_every_order(name: str, dtype: str, op: str) -> None:
    """A chain, a tree and halves: the fill leaves nothing to round, so the contract is exact."""
    plan, filler, finals = _reduced(name, dtype, op, 16)
    assert [str(r.failure) for r in _check(plan, filler, finals) if not r.ok] == []
    finals[9, "x"][20] += 1 if op != "product" else finals[9, "x"][20]
    failed = [r for r in _check(plan, filler, finals) if r.failure]
    assert [(f.rank, f.failure.index) for f in failed if f.failure] == [(9, (20,))]


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_sums_of_many_ranks_in_narrow_dtypes(dtype: str) -> None:
    plan, filler, finals = _reduced("halving_doubling_all_reduce", dtype, "sum", 150)
    results = [
        result
        for rank in (0, 77, 149)
        for result in check_contracts(plan, rank, filler.initial, lambda r, n: finals[r, n])
    ]
    assert [str(r.failure) for r in results] == ["None"] * 3
    assert int(finals[0, "x"].to(torch.int64).max()) > 4
