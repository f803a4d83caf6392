"""Which group of the pattern a recorded one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.explain.dump import OURS, WORLD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.explain.dump import GroupKey
    from commlang.explain.job import Job
    from commlang.program import Program


def group_numbers(job: Job, program: Program) -> dict[GroupKey, int]:
    """The pattern's number of each recorded group, of those that can only be one.

    An Executor describes a group by its label. Of others, those with ranks that the dumps list are
    found by them, and by their order where several have the same. Where nothing is listed, a job is
    taken to make its groups in the pattern's order, as torch numbers them so.
    """
    used = [int(number) for number in np.unique(program.group) if number > 0]
    described = {g.key: g.description for d in job.dumps.values() for g in d.groups.values()}
    found: dict[GroupKey, int] = {}
    for key in sorted(described, key=_made):
        if described[key] == WORLD:
            found[key] = 0
            continue
        fitting = _fitting(job, program, key, described[key], used)
        free = [number for number in fitting if number not in found.values()]
        if len(fitting) == 1 or (free and key.ranks is not None):
            found[key] = free[0] if free else fitting[0]
    return found


def _fitting(
    job: Job, program: Program, key: GroupKey, description: str, used: Sequence[int]
) -> list[int]:
    entries = program.groups.entries
    members = set(job.members(key))
    if key.ranks is not None:
        used = [number for number in used if set(entries[number].members) == members]
    else:
        used = [number for number in used if members <= set(entries[number].members)]
    if description.startswith(OURS):
        label = description.removeprefix(OURS)
        return [number for number in used if entries[number].label == label]
    if key.ranks is None:
        place = int(key.name) if key.name.isascii() and key.name.isdigit() else 0
        numbers = [int(number) for number in np.unique(program.group) if number > 0]
        turn = numbers[place - 1] if 1 <= place <= len(numbers) else 0
        return [turn] if turn in used else []
    return list(used)


def _made(key: GroupKey) -> tuple[int, str]:
    """In the order of creation, if names are numbers."""
    return (int(key.name) if key.name.isascii() and key.name.isdigit() else 0, key.name)
