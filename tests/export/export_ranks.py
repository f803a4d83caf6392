"""Exported scripts on real gloo ranks, for test_on_gloo.py: one start for many patterns.

    python export_ranks.py '{"world": 4, "cases": [{"plan": {…}, "script": …, "function": "ring"}]}'

Runs each pattern by the Executor and by its script, on the same data and with the same functions
for its externs. Prints a JSON list: for each case, what differs on which rank.
"""

from __future__ import annotations

import inspect
import json
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from commlang.errors import CommlangError
from commlang.execute.diagnosis import Narrator
from commlang.execute.launch import launch
from commlang.execute.options import LaunchOptions
from commlang.plan import Plan
from tests.execute.library_ranks import callables

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.execute.rank import RankContext
    from commlang.execute.world import World

Case: TypeAlias = tuple[Plan, str, str]


def narrator(cases: list[Case]) -> Narrator:
    names = [f"{plan.path} {plan.pattern}" for plan, *_ in cases]
    return Narrator(lambda rank, position: names[position])


def work(context: RankContext, cases: list[Case]) -> list[str]:
    context.follow(narrator(cases))
    with context.join(backend="gloo", device="cpu") as world:
        told: list[str] = []
        for number, case in enumerate(cases):
            context.position[0] = number
            told.append(difference(*case, world))
        return told


def difference(plan: Plan, script: str, function: str, world: World) -> str:
    """What the script leaves otherwise than the Executor, or an empty text."""
    import torch
    import torch.distributed as dist

    from commlang.execute.executor import Executor
    from commlang.execute.fill import Filler

    filler = Filler(plan, 7, world.device)
    right, found = filler.tensors(world.rank), filler.tensors(world.rank)
    found = {name: tensor.clone() for name, tensor in found.items()}
    externs = callables(plan)
    with Executor(plan, externs=externs) as executor:
        executor.run(**right)

    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(script, "<script>", "exec"), space)
    for name, function_of in externs.items():
        space[f"{name}_2" if f"{name}_2" in space else name] = function_of
    if "make_groups" in space:
        space["make_groups"]()
    entry = space[function]
    entry(dist.group.WORLD, *found.values(), **arguments(plan, entry, space))
    for name, tensor in right.items():
        same = tensor.contiguous().view(-1).view(torch.uint8)
        if not torch.equal(same, found[name].contiguous().view(-1).view(torch.uint8)):
            return f"{name}: {tensor.tolist()} by the Executor, {found[name].tolist()}"
    for group in list(space.get("_made", {}).values()):
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)
    return ""


def arguments(plan: Plan, function: Callable[..., Any], space: dict[str, Any]) -> dict[str, Any]:
    """The parameters that the function takes, from the constants of the script."""
    known = inspect.signature(function).parameters
    return {name: space[name.upper()] for name in plan.parameters if name in known}


def main(request: dict[str, Any]) -> int:
    cases: list[Case] = [
        (Plan.from_json(json.dumps(case["plan"])), case["script"], case["function"])
        for case in request["cases"]
    ]
    try:
        options = LaunchOptions(nproc_per_node=request["world"])
        ranks = launch(work, (cases,), options, narrator=narrator(cases))
    except CommlangError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps([[rank[number] for rank in ranks] for number in range(len(cases))]))
    return 0


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))
