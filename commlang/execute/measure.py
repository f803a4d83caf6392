"""Timed runs: how long each statement took on this rank."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch.distributed as dist

from commlang.execute.clock import clock_on, settle_on
from commlang.execute.story import AFTER, TURN
from commlang.schedule import Act
from commlang.schedule.told import action_operation, action_size, action_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.execute.executor import Executor
    from commlang.schedule import Action

MAX_SAMPLES = 4096
"""Durations kept per statement and rank; of more, evenly spread ones."""


@dataclass(slots=True)
class Timing:
    """One statement (or one batch of them) on one rank; durations in seconds, one per call.

    `size` is what nccl-tests calls the size, in bytes per call: the data of a collective, or what
    the rank sends (or, if it only receives, receives). `ranks` is the size of its group.
    """

    where: tuple[str, int, int]
    text: str
    operation: str
    size: int
    ranks: int
    calls: int = 0
    durations: list[float] = field(default_factory=list[float])


@dataclass(slots=True)
class RankTimes:
    """All timings of a rank; `totals` are whole runs of the plan, in seconds.

    `marks` are, of the first runs as far as they were to be kept, the host's clock at the start and
    after each action: an array (runs, actions + 1) in seconds.
    """

    statements: list[Timing]
    totals: list[float]
    marks: np.ndarray[Any, np.dtype[np.float64]] | None = None


def measure(
    executor: Executor,
    iterations: int,
    refill: Callable[[], None],
    first: int,
    *,
    stepwise: bool = False,
    keep: int = 0,
) -> RankTimes:
    """Run the plan so often, each time on fresh data and with all ranks starting together.

    `first` is the number of the first of these runs; positions are those of a `Story`. `stepwise`,
    the device is waited for after each step. The marks of the first `keep` runs are kept. Errors of
    operations are raised as torch raises them, for the watchdog to tell.
    """
    steps, actions, position = executor.steps, executor.actions, executor.position
    timings, totals, kept = _empty(executor), list[float](), list[list[float]]()
    clock = clock_on(executor.device, len(steps) + 1, stepwise=stepwise)
    settle = settle_on(executor.device)
    assert position is not None, "timed runs are watched"
    for turn in range(first, first + iterations):
        refill()
        settle()
        dist.barrier(executor.group)  # pyright: ignore[reportUnknownMemberType]
        base = turn * TURN
        with executor.mode:
            clock.mark(0)
            for number, step in enumerate(steps):
                position[0] = base + number
                step()
                clock.mark(number + 1)
            marks = clock.read()
        position[0] = base + AFTER
        totals.append(marks[-1] - marks[0])
        _add(actions, marks, timings)
        if len(kept) < keep:
            kept.append([clock.zero + mark for mark in marks])
    found = np.array(kept).reshape(len(kept), len(steps) + 1) if keep else None
    return RankTimes([_thinned(t) for t in timings.values()], totals, found)


def _key(executor: Executor, action: Action) -> tuple[object, ...]:
    program = executor.program
    rows = (action.row,) if action.act is Act.JOIN else action.rows
    return (action.act is Act.JOIN, *sorted({int(program.site[row]) for row in rows}))


def _empty(executor: Executor) -> dict[int, Timing]:
    """A timing per action; actions of the same statements share one."""
    shared: dict[tuple[object, ...], Timing] = {}
    timings: dict[int, Timing] = {}
    for number, action in enumerate(executor.actions):
        key = _key(executor, action)
        if key not in shared:
            shared[key] = _timing(executor, action)
        timings[number] = shared[key]
        timings[number].size = max(timings[number].size, action_size(executor.program, action))
    return timings


def _timing(executor: Executor, action: Action) -> Timing:
    program = executor.program
    site = program.site_of(action.row)
    line, column = site.source.position(site.span.start)
    gid = int(program.group[action.rows[0]]) if action.rows else -1
    ranks = len(program.groups.entries[gid].members) if gid >= 0 else 1
    text, operation = action_text(program, action), action_operation(program, action)
    return Timing((site.source.path, line, column), text, operation, 0, ranks)


def _add(actions: list[Action], marks: list[float], timings: dict[int, Timing]) -> None:
    """Add a run: an async operation lasts from its start to the end of its join."""
    started: dict[int, int] = {}
    for number, action in enumerate(actions):
        if action.act is Act.START:
            started[action.row] = number
            continue
        timings[number].durations.append(marks[number + 1] - marks[number])
        timings[number].calls += 1
        if action.act is Act.JOIN:
            for row in action.rows:
                begin = started.pop(row, None)
                if begin is not None:
                    timings[begin].durations.append(marks[number + 1] - marks[begin])
                    timings[begin].calls += 1


def _thinned(timing: Timing) -> Timing:
    if len(timing.durations) > MAX_SAMPLES:
        ordered = sorted(timing.durations)
        step = (len(ordered) - 1) / (MAX_SAMPLES - 1)
        timing.durations = [ordered[round(i * step)] for i in range(MAX_SAMPLES)]
    return timing
