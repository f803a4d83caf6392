"""What a simulation predicts of a run, beside what was measured."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel

from commlang.operations import Kind
from commlang.schedule import Act
from commlang.schedule.told import action_operation, action_text
from commlang.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlang.plan import Plan
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.report.run import Statement
    from commlang.schedule import Action
    from commlang.topology import Machine

Key = tuple[str, int, int, str, str]


class Predicted(BaseModel):
    """One statement, or the whole run: seconds, and predicted / measured - 1.

    `measured` is the median over calls and ranks (of the whole, over runs of the slowest rank), and
    `predicted` the median over calls and ranks of the simulation. Both are None where there is no
    such time, and `error` where one is missing or nothing was measured.
    """

    path: str = ""
    line: int = 0
    column: int = 0
    text: str
    measured: float | None
    predicted: float | None
    error: float | None


class Prediction(BaseModel):
    """A run beside its simulation on a machine; `without_cost` are externs taken to take no time.

    `error` is the median of the statements' errors without their signs.
    """

    machine: str
    statements: list[Predicted]
    whole: Predicted
    error: float | None
    without_cost: list[str] = []


def predict(
    plan: Plan, machine: Machine, statements: Sequence[Statement], total: float
) -> Prediction:
    """Simulate a plan and set it beside its measured statements and its median time `total`."""
    program = plan.program()
    simulation = simulate(program, machine, buckets=plan.buckets)
    timing = simulation.timing
    durations: dict[Key, list[float]] = {}
    for rank in range(plan.world):
        actions = plan.actions(rank, program)
        for key, seconds in _durations(program, actions, timing.start, timing.end):
            durations.setdefault(key, []).append(seconds)
    rows = [_beside(s, durations) for s in statements]
    errors = [abs(row.error) for row in rows if row.error is not None]
    return Prediction(
        machine=machine.name,
        statements=rows,
        whole=_predicted(simulation.makespan, total, text="the whole"),
        error=median(errors) if errors else None,
        without_cost=list(simulation.uncosted),
    )


def _beside(statement: Statement, durations: dict[Key, list[float]]) -> Predicted:
    s = statement
    found = durations.get((s.path, s.line, s.column, s.operation, s.text))
    place = {"path": s.path, "line": s.line, "column": s.column, "text": s.text}
    return _predicted(median(found) if found else None, s.median, **place)


def _predicted(predicted: float | None, measured: float | None, **place: object) -> Predicted:
    known = predicted is not None and measured
    error = predicted / measured - 1 if known and predicted is not None and measured else None
    return Predicted.model_validate(
        {**place, "measured": measured or None, "predicted": predicted, "error": error}
    )


def _durations(
    program: Program, actions: Sequence[Action], start: Array, end: Array
) -> Iterator[tuple[Key, float]]:
    """Of each action as a run measures it: what is started lasts to the end of its join."""
    begun: dict[int, Action] = {}
    for action in actions:
        rows = list(action.rows)
        if action.act is Act.START:
            begun[action.row] = action
        elif action.act is not Act.JOIN:
            yield _key(program, action), float(np.max(end[rows]) - np.min(start[rows]))
        else:
            waits = program.kind[action.row] == Kind.WAIT
            until = float(end[action.row] if waits else np.max(end[rows]))
            if waits:
                yield _key(program, action), until - float(start[action.row])
            for row in rows:
                if row in begun:
                    yield _key(program, begun.pop(row)), until - float(start[row])


def _key(program: Program, action: Action) -> Key:
    site = program.site_of(action.row)
    line, column = site.source.position(site.span.start)
    told = action_operation(program, action), action_text(program, action)
    return (site.source.path, line, column, *told)
