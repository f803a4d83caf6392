"""Which rank holds a stage: read off the rows, and compared with what the user says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.convert.schedule import Schedule

_PAIR = re.compile(r"\s*(\d{1,6})\s*=\s*(\d{1,6})\s*")


def place_stages(schedule: Schedule, styles: str | None = None) -> list[int]:
    """The rank of each stage, where its actions stand.

    `styles` is `loop` (stage s on rank s % ranks), `v` (to and fro: rank r has stages r and
    2 ranks - 1 - r) or a list such as `0=0,1=1,2=1`; the rows must then be as it says. Raises
    UsageError for a stage that is on two ranks, on another than said, or on none.
    """
    expected = _expected(styles, schedule) if styles is not None else None
    found: dict[int, int] = {}
    for rank, row in enumerate(schedule.rows):
        for index, action in enumerate(row.actions):
            for atom in action.atoms():
                first = found.setdefault(atom.stage, rank)
                if expected is not None and expected[atom.stage] != rank:
                    raise UsageError(
                        f"{schedule.where(rank, index)}: `{action}` is in the row of rank {rank}, "
                        f"but --stages puts stage {atom.stage} on rank {expected[atom.stage]}"
                    )
                if first != rank:
                    raise UsageError(
                        f"{schedule.where(rank, index)}: `{action}` is in the row of rank {rank}, "
                        f"but stage {atom.stage} is on rank {first} (line {first + 1})"
                    )
    for stage in range(schedule.stages):
        if stage not in found:
            raise UsageError(
                f"{schedule.path}: stage {stage} does nothing, though there is a stage "
                f"{schedule.stages - 1}"
            )
    return [found[stage] for stage in range(schedule.stages)]


def _expected(styles: str, schedule: Schedule) -> list[int]:
    ranks, stages = len(schedule.rows), schedule.stages
    match styles:
        case "loop":
            return [stage % ranks for stage in range(stages)]
        case "v":
            turn = 2 * ranks
            return [min(stage % turn, turn - 1 - stage % turn) for stage in range(stages)]
        case _:
            return _mapped(styles, ranks, stages)


def _mapped(styles: str, ranks: int, stages: int) -> list[int]:
    found: dict[int, int] = {}
    for pair in styles.split(","):
        match = _PAIR.fullmatch(pair)
        if match is None:
            raise UsageError(
                f"--stages {styles}: write `loop`, `v` or STAGE=RANK for each stage, as in "
                "0=0,1=1,2=1,3=0"
            )
        stage, rank = int(match[1]), int(match[2])
        if found.setdefault(stage, rank) != rank:
            raise UsageError(f"--stages: stage {stage} is on rank {found[stage]} and rank {rank}")
        if stage >= stages or rank >= ranks:
            raise UsageError(
                f"--stages: {stage}={rank}, but the file has {stages} stages and {ranks} ranks"
            )
    for stage in range(stages):
        if stage not in found:
            raise UsageError(f"--stages does not say which rank has stage {stage}")
    return [found[stage] for stage in range(stages)]
