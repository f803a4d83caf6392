"""The pattern library on real gloo ranks, for test_library_on_gloo.py: one start for many patterns.

    python library_ranks.py '{"world": 4, "cases": [{"file": "ring.cl", "pattern": "ring", …}]}'

Prints a JSON list with an entry for each case: what its contracts said, and what they said once the
last bit of one element was changed after the run.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from commlang.errors import CommlangError
from commlang.execute.diagnosis import Narrator
from commlang.execute.launch import launch
from commlang.execute.options import LaunchOptions
from commlang.expand.binding import handed_on
from commlang.plan import Plan, make_plan
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from commlang.execute.contract import ContractResult
    from commlang.execute.rank import RankContext
    from commlang.execute.world import World


@dataclass(frozen=True, slots=True)
class Spot:
    """One element of a tensor of a rank, by its place in row-major order."""

    rank: int
    tensor: str
    element: int


Case: TypeAlias = tuple[Plan, list[Spot], int, bool]


def callables(plan: Plan) -> dict[str, Callable[..., None]]:
    """For each extern a plan may call, a function that depends on each element that it reads."""
    return {
        name: partial(_work, [p.mode for p in handed_on(found.node.params)])
        for module in plan.definition.module.reachable()
        for name, found in module.symbols.items()
        if isinstance(found.node, ast.Extern)
    }


def _work(modes: list[str | None], *values: Any) -> None:
    import torch

    total = sum(value for value, mode in zip(values, modes, strict=True) if mode is None)
    for value, mode in zip(values, modes, strict=True):
        if mode in ("read", "update"):
            flat = value.double().flatten()
            total += int((flat * (torch.arange(flat.numel()) % 7 + 1)).sum() * 8) % 10_007
    for value, mode in zip(values, modes, strict=True):
        if mode in ("write", "update"):
            places = torch.arange(value.numel()).view(value.shape)
            value.copy_((places * 5 + total) % 61)


def plan(case: dict[str, Any], world: int) -> Plan:
    """The plan of a case; raises PatternError if its `require` forbids the world."""
    module = load_module(Source.read(case["file"]))
    definition = module.symbols[case["pattern"]]
    return make_plan(definition, world, case["values"], schedule=case["schedule"])


def narrator(cases: list[Case]) -> Narrator:
    names = [f"{plan.path} {plan.pattern}" for plan, *_ in cases]
    return Narrator(lambda rank, position: names[position])


def work(context: RankContext, cases: list[Case], backend: str = "gloo") -> list[Any]:
    context.follow(narrator(cases))
    with context.join(backend=backend, device="cpu") as world:
        told: list[Any] = []
        for number, (a_plan, spots, seed, bound) in enumerate(cases):
            context.position[0] = number
            told.append(run(a_plan, spots, seed, bound, world))
        return told


def run(plan: Plan, spots: list[Spot], seed: int, bound: bool, world: World) -> dict[str, Any]:
    """Run a plan and check its contracts; then again for each spot with a wrong element there.

    If `bound`, externs are Python callables, else they only take their time.
    """
    import torch.distributed as dist

    from commlang.execute.contract import check_contracts, needs_final
    from commlang.execute.exchange import final_tensors
    from commlang.execute.executor import Executor
    from commlang.execute.fill import Filler

    filler = Filler(plan, seed, world.device)
    tensors = filler.tensors(world.rank)
    externs = callables(plan) if bound else {}
    limit = timedelta(minutes=2)
    with Executor(plan, externs=externs, stand_in=True, timeout=limit) as executor:
        executor.run(**tensors)

    def verdicts() -> list[ContractResult]:
        final = final_tensors(tensors, needs_final(plan.definition), dist.group.WORLD)
        return check_contracts(plan, world.rank, filler.initial, final, externs)

    right = [told(result) for result in verdicts()]
    wrong: list[Any] = []
    for spot in spots:
        change = flip(tensors[spot.tensor], spot.element) if spot.rank == world.rank else None
        wrong.append((change, [told(result) for result in verdicts()]))
        if change is not None:
            flip(tensors[spot.tensor], spot.element)
    return {"right": right, "wrong": wrong}


def flip(tensor: torch.Tensor, element: int) -> tuple[Any, Any]:
    """Change the last bit of an element; its value before and after."""
    import torch

    flat = tensor.view(-1)
    before = flat[element].item()
    flat[element : element + 1].view(torch.uint8)[0] ^= 1
    return before, flat[element].item()


def told(result: ContractResult) -> Any:
    found = result.failure
    if found is None:
        return None
    return [found.rank, found.tensor, found.index, found.expected, found.got, str(found)]


def main(request: dict[str, Any]) -> int:
    world = request["world"]
    cases = [
        (plan(case, world), [Spot(*spot) for spot in case["spots"]], case["seed"], case["bound"])
        for case in request["cases"]
    ]
    try:
        options = LaunchOptions(nproc_per_node=world)
        ranks = launch(work, (cases,), options, narrator=narrator(cases))
    except CommlangError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps([[rank[number] for rank in ranks] for number in range(len(cases))]))
    return 0


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))
