"""Where torch gathers a stage's weights and reduces its gradients.

The passes follow `_add_unshard_reshard` and `_add_reduce_grad` of torch 2.13. No message between
ranks comes of them, but they take part in the order in which sends and receives are put.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.convert.actions import Act, Action
from commlang.convert.schedule import Row, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ACTIVE_STAGES = 3
"""How many stages of a rank have their weights gathered at once, those to come included."""


def add_weights(schedule: Schedule) -> Schedule:
    """Add UNSHARD, RESHARD and REDUCE_GRAD to a schedule of computations."""
    rows = [_reduced(_unsharded(row.actions), schedule.batches) for row in schedule.rows]
    return replace(schedule, rows=[Row(row) for row in rows])


def _unsharded(actions: Sequence[Action]) -> list[Action]:
    # A set, as in torch, whose order is then that of the RESHARDs.
    active: set[int] = set()
    result: list[Action] = []
    for index, action in enumerate(actions):
        soon = _next_stages(actions, index)
        for stage in [stage for stage in active if stage not in soon]:
            active.remove(stage)
            result.append(Action(Act.RESHARD, stage))
        for stage in soon:
            if stage not in active:
                active.add(stage)
                result.append(Action(Act.UNSHARD, stage))
        result.append(action)
    return [*result, *(Action(Act.RESHARD, stage) for stage in active)]


def _next_stages(actions: Sequence[Action], start: int) -> list[int]:
    """The next stages that compute, in order; one more where an action made of two ends them."""
    found: list[int] = []
    for index in range(start, len(actions)):
        for atom in actions[index].atoms():
            if atom.stage not in found:
                found.append(atom.stage)
        if len(found) >= ACTIVE_STAGES:
            break
    return found


def _reduced(actions: Iterable[Action], batches: int) -> list[Action]:
    done: Counter[int] = Counter()
    result: list[Action] = []
    for action in actions:
        result.append(action)
        for atom in action.atoms():
            if atom.act in (Act.BACKWARD, Act.BACKWARD_WEIGHT):
                done[atom.stage] += 1
                if done[atom.stage] == batches:
                    result.append(Action(Act.REDUCE_GRAD, atom.stage))
    return result
