"""Torch's schedules, as the examples have them, become patterns that do just that."""

from __future__ import annotations

from pathlib import Path

import pytest

from commlang.checks import check_program
from commlang.convert import pattern_from_schedule, read_schedule
from commlang.convert.meetings import swaps
from commlang.convert.placement import place_stages
from commlang.source import Source
from commlang.syntax.formatter import format_source
from commlang.transports import Backend, NcclInit, Target

from .rows import program_of, told, written

FOLDER = Path(__file__).parents[2] / "examples" / "pipelines"
FILES = sorted(FOLDER.glob("*.csv"))
DEFERRED = sorted(FOLDER.glob("*_deferred.csv"))
EAGER = Target(Backend.NCCL, NcclInit.EAGER)
HANGING = ("issue_172668_first", "issue_172668_second", "receive_first")
ORDERS = sorted(FOLDER.glob("orders/*.csv"))


def style(path: Path) -> str:
    return "v" if path.name.startswith(("zbv", "dual")) else "loop"


def test_all_schedules_of_torch_are_there() -> None:
    names = {path.stem.removesuffix("_2").removesuffix("_4") for path in ORDERS}
    assert names == {
        "gpipe",
        "one_f_one_b",
        "looped_bfs",
        "interleaved_1f1b",
        "interleaved_zero_bubble",
        "zbv_zero_bubble",
        "dual_pipe_v",
    }
    assert len(ORDERS) == 14
    assert len(FILES) == 14 + 10 + 3


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pattern_does_what_its_schedule_says(path: Path) -> None:
    schedule = read_schedule(str(path))
    text = pattern_from_schedule(schedule, style(path)).text
    assert format_source(Source(text)) == text
    program = program_of(text, len(schedule.rows))
    assert told(program, schedule) == written(schedule)
    mixed = bool(swaps(schedule, place_stages(schedule)))
    assert {found.code for found in check_program(program)} == ({"CL240"} if mixed else set())
    on_nccl = {found.code for found in check_program(program, EAGER)}
    assert ("CL250" in on_nccl) == (path.stem.endswith("_deferred") or path.stem in HANGING)


def test_what_is_mixed_up() -> None:
    schedules = {path.stem: read_schedule(str(path)) for path in FILES}
    mixed = [name for name, read in schedules.items() if swaps(read, place_stages(read))]
    assert mixed == [
        "dual_pipe_v_4_deferred",
        "interleaved_zero_bubble_2_deferred",
        "zbv_zero_bubble_2_deferred",
        "zbv_zero_bubble_4_deferred",
    ]


@pytest.mark.parametrize("path", ORDERS, ids=lambda path: path.stem)
def test_lowering_is_that_of_torch(path: Path) -> None:
    order = read_schedule(str(path))
    for deferred in (False, True):
        lowered = FOLDER / f"{path.stem}{'_deferred' if deferred else ''}.csv"
        if deferred and not lowered.exists():
            continue
        schedule = read_schedule(str(lowered))
        text = pattern_from_schedule(order, lower=True, defer=deferred).text
        assert told(program_of(text, len(order.rows)), order) == written(schedule)


@pytest.mark.parametrize("path", DEFERRED, ids=lambda path: path.stem)
def test_deferring_is_that_of_torch(path: Path) -> None:
    lowered = read_schedule(str(path).replace("_deferred", ""))
    text = pattern_from_schedule(lowered, defer=True).text
    assert told(program_of(text, len(lowered.rows)), lowered) == written(read_schedule(str(path)))


@pytest.mark.parametrize("path", FILES[::3], ids=lambda path: path.stem)
def test_blocking_keeps_the_order_and_waits_for_nothing(path: Path) -> None:
    schedule = read_schedule(str(path))
    text = pattern_from_schedule(schedule, blocking=True).text
    assert format_source(Source(text)) == text
    assert "async" not in text
    assert "wait(" not in text
    assert told(program_of(text, len(schedule.rows)), schedule) == written(schedule)


def test_a_stage_is_where_its_actions_stand() -> None:
    schedule = read_schedule(str(FOLDER / "zbv_zero_bubble_4.csv"))
    assert place_stages(schedule) == [0, 1, 2, 3, 3, 2, 1, 0]
    assert place_stages(schedule, "v") == place_stages(schedule)
    said = ",".join(f"{stage}={rank}" for stage, rank in enumerate(place_stages(schedule)))
    assert place_stages(schedule, said) == place_stages(schedule)
