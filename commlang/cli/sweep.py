"""`commlang simulate --sweep`: one simulation for each combination of values, as a table."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from commlang.cli.simulate import simulated
from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.report.sweep import Point

_OPTIONS = ("world", "topology")
"""What may be swept beside the parameters of the pattern."""


def run_sweep(file: str, texts: tuple[str, ...], plot: str | None, given: dict[str, Any]) -> str:
    """All points as text or JSON; with `plot` also a picture in that file, which must be new."""
    from commlang.report.sweep import draw, render, render_json
    from commlang.simulate.read import sweeps_of

    sweeps = sweeps_of(texts)
    if plot:
        from commlang.cli.rewrite import refuse_to_create

        if not plot.endswith(".svg"):
            raise UsageError(f"--plot {plot}: only SVG is drawn; name it FILE.svg")
        refuse_to_create(plot)
    if file == "-":
        raise UsageError("--sweep reads FILE many times; put the pattern into a file")
    names = tuple(sweeps)
    points = [
        _point(file, dict(zip(names, values, strict=True)), given)
        for values in product(*sweeps.values())
    ]
    if plot:
        from commlang.cli.rewrite import create_file

        machines = ", ".join(dict.fromkeys(point.machine for point in points))
        create_file(plot, draw(names, points, title=f"{points[0].pattern} on {machines}"))
    return render_json(points) + "\n" if given["form"] == "json" else render(names, points) + "\n"


def _point(file: str, values: Mapping[str, str], given: dict[str, Any]) -> Point:
    """The simulation at one point, reduced to what the table tells."""
    from commlang.report.sweep import point_of

    options = dict(given)
    for name in _OPTIONS:
        if name in values:
            options[name] = values[name]
    options["world"] = _world(options["world"])
    taken = tuple(f"{n}={v}" for n, v in values.items() if n not in _OPTIONS)
    kept = tuple(s for s in given["settings"] if s.partition("=")[0].strip() not in values)
    options["settings"] = (*kept, *taken)
    simulation, _ = simulated(file, options, quiet=True)
    return point_of(dict(values), simulation)


def _world(value: Any) -> int | None:
    if not isinstance(value, str):
        return value
    if not (value.isdecimal() and value.isascii() and len(value) < 10 and int(value)):
        raise UsageError(f"--sweep world={value}: write a number of ranks, from 1 up")
    return int(value)
