"""The events of a trace: slices of each rank's actions, asynchronous spans, and who met whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.program.matching import match_collectives, match_messages
from commlang.records import record
from commlang.schedule import Act
from commlang.schedule.told import action_operation, action_size, action_text
from commlang.trace.spans import Spans, find_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlang.plan import Plan
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.schedule import Action
    from commlang.trace.clocks import RankTrace

STATEMENTS, ITERATIONS = 0, 1
"""The threads of each rank's process: what its host does, and the runs as a whole."""
ACTION, RUN, ASYNC, MESSAGE, COLLECTIVE = "action", "run", "async", "message", "collective"
"""Categories of events."""
_LONGEST = 160

Event = dict[str, Any]


@record
class _Lane:
    """One rank: its actions as far as they are kept, and their marks in whole nanoseconds.

    Nanoseconds count from the first mark of all; no action is shorter than one.
    """

    rank: int
    actions: list[Action]
    marks: Array


def events(plan: Plan, ranks: Sequence[RankTrace], per_rank: int) -> Iterator[Event]:
    """All events of a trace; of each rank's run the first `per_rank` actions."""
    program = plan.program()
    lanes = _lanes(plan, program, ranks, per_rank)
    for lane, rank in zip(lanes, ranks, strict=True):
        yield from _names(rank)
        yield from _slices(program, lane)
    spans = find_spans(program, (lane.actions for lane in lanes))
    runs = range(len(lanes[0].marks))
    number = 0
    for event in (e for run in runs for e in _links(program, lanes, spans, run)):
        number += event["ph"] in "bs"
        yield {**event, "id": number}


def _lanes(plan: Plan, program: Program, ranks: Sequence[RankTrace], per_rank: int) -> list[_Lane]:
    seconds = [rank.clock.to_first(rank.marks[:, : per_rank + 1]) for rank in ranks]
    zero = min((float(marks.min()) for marks in seconds if marks.size), default=0.0)
    lanes: list[_Lane] = []
    for rank, marks in zip(ranks, seconds, strict=True):
        actions = plan.actions(rank.rank, program)[:per_rank]
        place: Array = np.arange(len(actions) + 1)
        whole: Array = np.rint((marks - zero) * 1e9).astype(np.int64) - place
        whole = np.maximum.accumulate(whole, axis=1) + place
        lanes.append(_Lane(rank.rank, actions, whole))
    return lanes


def _names(rank: RankTrace) -> Iterator[Event]:
    """What viewers call a rank's process and threads."""

    def meta(kind: str, thread: int | None = None, **args: Any) -> Event:
        where = {} if thread is None else {"tid": thread}
        return {"ph": "M", "pid": rank.rank, **where, "name": kind, "args": args}

    yield meta("process_name", name=f"rank {rank.rank} ({rank.host})")
    yield meta("process_sort_index", sort_index=rank.rank)
    yield meta("thread_name", STATEMENTS, name="statements")
    yield meta("thread_name", ITERATIONS, name="iterations")


def _slices(program: Program, lane: _Lane) -> Iterator[Event]:
    """A slice for each run of the plan, and one for each action in it."""
    told = [_told(program, action) for action in lane.actions]
    for run, marks in enumerate(lane.marks.tolist()):
        yield _slice(lane.rank, ITERATIONS, RUN, marks[0], marks[-1], f"iteration {run}")
        for number, (name, args) in enumerate(told):
            start, end = marks[number], marks[number + 1]
            event = _slice(lane.rank, STATEMENTS, ACTION, start, end, name)
            yield {**event, "args": {"iteration": run, **args}}


def _slice(pid: int, tid: int, cat: str, start: int, end: int, name: str) -> Event:
    times = {"ts": start / 1e3, "dur": (end - start) / 1e3}
    return {"ph": "X", "pid": pid, "tid": tid, "cat": cat, **times, "name": name}


def _told(program: Program, action: Action) -> tuple[str, Event]:
    """The name of an action, and what a click on it shows."""
    text = action_text(program, action)
    args: Event = {
        "statement": text,
        "where": program.where(action.row),
        "operation": action_operation(program, action),
        "act": action.act.value,
        "bytes": action_size(program, action),
    }
    group = int(program.group[action.rows[0]]) if action.rows else -1
    if group >= 0:
        args["group"] = program.groups.entries[group].label
    peers = sorted({int(program.peer[row]) for row in action.rows if program.is_message[row]})
    if peers:
        args["peers"] = peers
    args |= {"row": action.row, "rows": list(action.rows)}
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…", args


def _links(program: Program, lanes: list[_Lane], spans: Spans, run: int) -> Iterator[Event]:
    """Of one run: asynchronous spans, messages from send to recv, and collectives."""
    began, ended = _times(program, lanes, spans, run)
    yield from _async(program, lanes, spans, began, ended)
    yield from _messages(program, spans, began, ended)
    yield from _collectives(program, spans, began)


def _times(program: Program, lanes: list[_Lane], spans: Spans, run: int) -> tuple[Array, Array]:
    """Nanoseconds at which each row begins and ends; of what is not kept, anything."""
    began, ended = (np.zeros(len(program), dtype=np.int64) for _ in range(2))
    for lane in lanes:
        rows = program.rows_of(lane.rank)
        part = slice(rows.start, rows.stop)
        began[part] = lane.marks[run, spans.begin[part]]
        ended[part] = lane.marks[run, spans.finish[part] + 1]
    return began, ended


def _async(
    program: Program, lanes: list[_Lane], spans: Spans, began: Array, ended: Array
) -> Iterator[Event]:
    """From start to join; of operations that are started as one, once."""
    for lane in lanes:
        for action in lane.actions:
            if action.act is not Act.START or spans.finish[action.row] < 0:
                continue
            text = action_text(program, action)[:_LONGEST]
            same = {"pid": lane.rank, "tid": STATEMENTS, "cat": ASYNC, "name": text}
            yield {"ph": "b", **same, "ts": began[action.row] / 1e3, "args": {"row": action.row}}
            yield {"ph": "e", **same, "ts": ended[action.row] / 1e3}


def _flow(phase: str, program: Program, row: int, time: int, cat: str, name: str) -> Event:
    """One end of an arrow, which belongs to the slice around it."""
    place = {"pid": int(program.rank[row]), "tid": STATEMENTS}
    binds = {"bp": "e"} if phase == "f" else {}
    return {"ph": phase, **binds, **place, "cat": cat, "name": name, "ts": time / 1e3}


def _messages(program: Program, spans: Spans, began: Array, ended: Array) -> Iterator[Event]:
    """An arrow from the start of each send to the end of the recv that it meets."""
    found = match_messages(program)
    kept = (spans.begin[found.send] >= 0) & (spans.finish[found.recv] >= 0)
    for send, recv in zip(found.send[kept].tolist(), found.recv[kept].tolist(), strict=True):
        yield _flow("s", program, send, int(began[send]), MESSAGE, "message")
        yield _flow("f", program, recv, int(ended[recv]) - 1, MESSAGE, "message")


def _collectives(program: Program, spans: Spans, began: Array) -> Iterator[Event]:
    """An arrow through all calls of each collective, in the order in which the ranks came."""
    found = match_collectives(program)
    for first, last in zip(found.start[:-1].tolist(), found.start[1:].tolist(), strict=True):
        rows = found.row[first:last]
        if len(rows) < 2 or (spans.begin[rows] < 0).any():
            continue
        name = program.site_of(int(rows[0])).name
        came: list[int] = rows[np.argsort(began[rows], kind="stable")].tolist()
        for place, row in enumerate(came):
            phase = "s" if not place else "f" if place == len(came) - 1 else "t"
            yield _flow(phase, program, row, int(began[row]), COLLECTIVE, name)
