"""What a sweep of simulations found: a table, JSON, and a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, TypeAdapter

from commlang.report.plot import Line, line_plot
from commlang.report.text import percent_text, seconds_text
from commlang.simulate.bottleneck import stretches
from commlang.syntax.literals import number
from commlang.verify.values import format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.simulate import Simulation


class Point(BaseModel):
    """One simulation of a sweep: what was set, and in seconds what came of it.

    `exposed` is that of the rank with the most of it; `mostly` is what the critical path consists
    of.
    """

    pattern: str
    values: dict[str, str]
    world: int
    machine: str
    events: int
    makespan: float
    exposed: float
    bubble: float | None
    mostly: str


def point_of(values: dict[str, str], simulation: Simulation) -> Point:
    """What the table tells of a simulation."""
    totals: dict[str, float] = {}
    for stretch in stretches(simulation):
        for cause, seconds in stretch.causes.items():
            totals[cause] = totals.get(cause, 0.0) + seconds
    return Point(
        pattern=simulation.program.name,
        values=values,
        world=simulation.program.world,
        machine=simulation.machine.name,
        events=len(simulation.program),
        makespan=simulation.makespan,
        exposed=float(simulation.ranks.exposed.max(initial=0.0)),
        bubble=simulation.bubble,
        mostly=max(totals, key=lambda c: totals[c]) if simulation.makespan else "",
    )


def render(names: Sequence[str], points: Sequence[Point]) -> str:
    """The table for a terminal."""
    bubbles = any(point.bubble is not None for point in points)
    rows = [(*names, "time", "exposed", *(["bubble"] if bubbles else []), "mostly")]
    rows += [
        (
            *(_shown(point.values[name]) for name in names),
            seconds_text(point.makespan),
            seconds_text(point.exposed),
            *([_bubble(point.bubble)] if bubbles else []),
            point.mostly,
        )
        for point in points
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _bubble(part: float | None) -> str:
    return "" if part is None else percent_text(part)


def render_json(points: Sequence[Point]) -> str:
    """The points as a JSON list."""
    return TypeAdapter(list[Point]).dump_json(list(points), indent=2).decode()


def draw(names: Sequence[str], points: Sequence[Point], *, title: str) -> str:
    """An SVG of times over the numeric parameter with the most values, a line for each other."""
    numeric = [n for n in names if all(_value(p.values[n]) is not None for p in points)]
    if not numeric:  # nothing to put on an axis but the order
        lines = [Line("", [(float(i), p.makespan) for i, p in enumerate(points, 1)])]
        return line_plot(lines, title=title, across="point of the sweep")
    along = max(numeric, key=lambda n: len({p.values[n] for p in points}))
    grouped: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        rest = [f"{n} = {_shown(v)}" for n, v in point.values.items() if n != along]
        grouped.setdefault(", ".join(rest), []).append(
            (_value(point.values[along]) or 0.0, point.makespan)
        )
    lines = [Line(label, sorted(found)) for label, found in grouped.items()]
    return line_plot(lines, title=title, across=along)


def _value(text: str) -> float | None:
    try:
        return float(number(text)[0])
    except (ValueError, OverflowError):
        return None


def _shown(text: str) -> str:
    value = _value(text)
    return text if value is None or value != int(value) else format_value(int(value))
