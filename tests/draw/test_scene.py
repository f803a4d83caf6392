"""Timelines before they have a format: every event of every lane once, none on another."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commlang.draw import Subject
from commlang.draw.bars import TRACKS, State
from commlang.draw.scene import make_scene
from commlang.program.timing import Timing

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.draw.scene import Scene
    from commlang.program import Program

PATTERNS = [
    ("ring_all_reduce", 4),
    ("ring_all_reduce", 40),
    ("star_all_reduce", 64),
    ("chain_broadcast", 300),
    ("one_f_one_b", 8),
    ("ddp_step", 4),
    ("fsdp_step", 24),
    ("hierarchical_all_reduce", 64),
    ("halo_exchange", 8),
    ("moe", 8),
]


def check(scene: Scene) -> None:
    """Each row of a shown rank in one bar; bars of a track one after the other."""
    for lane in scene.lanes:
        bars = [bar for bar in scene.bars if bar.lane is lane]
        rows = np.sort(np.concatenate([bar.rows for bar in bars]))
        assert rows.tolist() == list(scene.program.rows_of(lane.rank))
        assert all(bar.start <= bar.met <= bar.end for bar in bars)
        assert lane.tracks == max(bar.track for bar in bars) + 1 <= TRACKS
        for track in range(lane.tracks):
            line = sorted((bar.start, bar.end) for bar in bars if bar.track == track)
            assert all(one[1] <= other[0] for one, other in pairwise(line))


@pytest.mark.parametrize(("name", "world"), PATTERNS)
def test_every_event_has_one_place(program: Callable[..., Program], name: str, world: int) -> None:
    scene = make_scene(Subject(program(name, world)))
    check(scene)
    assert len(scene.bars) <= 2000
    assert len(scene.arrows) <= 1000
    for arrow in scene.arrows:
        assert arrow.source.time <= arrow.target.time + 1e-9 or arrow.count > 1


def test_long_programs_are_shown_by_windows(program: Callable[..., Program]) -> None:
    scene = make_scene(Subject(program("one_f_one_b", 4, micro=500)))
    check(scene)
    assert scene.scale.folds
    assert scene.scale.head == 18
    assert {len(b.rows) for b in scene.bars if b.start < 18} == {1}
    blocks = [bar for bar in scene.bars if bar.is_block]
    assert len(blocks) == 48
    assert scene.notes[-1].endswith("events stand in 48 blocks of neighbours.")


def test_messages_between_blocks_are_one_arrow(program: Callable[..., Program]) -> None:
    made = program("ring_all_reduce", 16, n=1024)
    scene = make_scene(Subject(made), room=100)
    messages = sum(arrow.count for arrow in scene.arrows)
    assert messages == 16 * 30
    assert len(scene.arrows) < messages


def test_times_of_a_clock_are_kept(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], n = 8):
    fill(x, 1)
    all_reduce(x)
"""
    made = program(text, 2)
    timing = Timing(
        np.array([0.0, 1e-3, 0.0, 3e-3]), np.array([1e-3, 5e-3, 2e-3, 4e-3]), "measured"
    )
    scene = make_scene(Subject(made, (timing,)))
    found = [(bar.start, bar.met, bar.end) for bar in scene.bars]
    assert found == [(0, 0, 1e-3), (1e-3, 3e-3, 5e-3), (0, 0, 2e-3), (3e-3, 3e-3, 4e-3)]
    assert [(band.start, band.end) for band in scene.bands] == [(3e-3, 4e-3)]
    assert (scene.unit, scene.first, scene.last) == ("s", 0.0, 5e-3)


def test_planned_and_measured_lanes_alternate(program: Callable[..., Program]) -> None:
    made = program("all_reduce", 2)
    planned = Timing(np.zeros(2), np.ones(2), "simulated on a box")
    measured = Timing(np.zeros(2), np.array([2.0, np.nan]), "measured")
    scene = make_scene(Subject(made, (planned, measured)))
    assert [(lane.rank, lane.timing) for lane in scene.lanes] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert scene.origins == ("simulated on a box", "measured")


def test_events_without_a_time_are_counted(program: Callable[..., Program]) -> None:
    timing = Timing(np.array([0.0, np.nan]), np.array([1.0, np.nan]), "measured")
    scene = make_scene(Subject(program("all_reduce", 2), (timing,)))
    assert len(scene.bars) == 1
    assert scene.notes == ["Events without a time, which are not drawn: 1 (measured)."]


def test_a_deadlock_stops_all_and_shows_what_comes_after(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], y: float32[n], n = 8):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
    for i in range(9):
        fill(y, i)
"""
    scene = make_scene(Subject(program(text, 3)))
    check(scene)
    assert scene.stops == 0
    lane = [(bar.state, len(bar.rows)) for bar in scene.bars if bar.lane.rank == 1]
    never = State.NEVER
    assert lane == [(State.HANGS, 1), (never, 1), (never, 1), (never, 8)]


def test_an_empty_pattern_has_a_timeline(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], n = 8):
    if rank > 5:
        fill(x, 1)
"""
    scene = make_scene(Subject(program(text, 2)))
    assert (scene.bars, [lane.rank for lane in scene.lanes]) == ([], [0, 1])
