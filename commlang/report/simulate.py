"""What `commlang simulate` prints: a summary, the critical path, the ranks, the fullest links."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel

from commlang.report.text import (
    bytes_text,
    counted,
    parameters_text,
    percent_text,
    seconds_text,
    wrapped,
)
from commlang.simulate.bottleneck import stretches
from commlang.verify.values import format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program import Program
    from commlang.simulate import Simulation

_STATEMENTS = 10
_RANKS = 16
_LINKS = 5
_MAX_LINKS = 100_000
"""Links that JSON lists at most, the fullest."""


class StretchReport(BaseModel):
    """What a statement takes of the critical path, in seconds by cause."""

    path: str
    line: int
    column: int
    text: str
    events: int
    seconds: float
    causes: dict[str, float]
    algorithms: list[str]


class RankReport(BaseModel):
    """One rank's time in seconds, and the bytes of its tensors."""

    rank: int
    compute: float
    exposed: float
    late: float
    idle: float
    memory: int


class LinkReport(BaseModel):
    """A channel: its bytes, and the part of the makespan that they take it."""

    name: str
    bytes: int
    busy: float


class SimulationReport(BaseModel):
    """A simulation, as `--format json` prints it; times in seconds."""

    pattern: str
    path: str
    parameters: dict[str, str]
    world: int
    machine: str
    contention: bool
    passes: list[str]
    events: int
    makespan: float
    bubble: float | None
    bottleneck: str
    uncosted: list[str]
    critical: list[StretchReport]
    ranks: list[RankReport]
    links: list[LinkReport]


def make_report(
    simulation: Simulation, *, contention: bool, passes: Sequence[str]
) -> SimulationReport:
    """Everything that is told of a simulation."""
    program = simulation.program
    return SimulationReport(
        pattern=program.name,
        path=program.definition.module.source.path,
        parameters=_parameters(program),
        world=program.world,
        machine=simulation.machine.name,
        contention=contention,
        passes=list(passes),
        events=len(program),
        makespan=simulation.makespan,
        bubble=simulation.bubble,
        bottleneck=simulation.bottleneck,
        uncosted=list(simulation.uncosted),
        critical=_critical(simulation),
        ranks=_ranks(simulation),
        links=_links(simulation),
    )


def _parameters(program: Program) -> dict[str, str]:
    """Parameters as one would write them."""
    return {name: format_value(value) for name, value in program.parameters.items()}


def _critical(simulation: Simulation) -> list[StretchReport]:
    program = simulation.program
    used = algorithms_by_site(simulation)
    found: list[StretchReport] = []
    for stretch in stretches(simulation):
        site = program.sites[stretch.site]
        line, column = site.source.position(site.span.start)
        found.append(
            StretchReport(
                path=site.source.path,
                line=line,
                column=column,
                text=program.text(stretch.row),
                events=stretch.events,
                seconds=stretch.seconds,
                causes={str(c): s for c, s in stretch.causes.items()},
                algorithms=used.get(stretch.site, []),
            )
        )
    return found


def algorithms_by_site(simulation: Simulation) -> dict[int, list[str]]:
    """The algorithms that each collective statement runs by."""
    calls, wiring = simulation.calls, simulation.wiring
    if not len(calls.pattern):
        return {}
    site = simulation.program.site[wiring.member[wiring.first[:-1]]]
    pairs = np.unique(np.stack([site, calls.pattern], axis=1), axis=0)
    found: dict[int, list[str]] = {}
    for number, pattern in pairs.tolist():
        name = calls.patterns[int(pattern)].algorithm
        listed = found.setdefault(number, [])
        if name not in listed:
            listed.append(name)
    return found


def _ranks(simulation: Simulation) -> list[RankReport]:
    ranks = simulation.ranks
    columns = (ranks.compute, ranks.exposed, ranks.late, ranks.idle, simulation.peak_memory)
    lines = zip(*(column.tolist() for column in columns), strict=True)
    return [
        RankReport(rank=r, compute=c, exposed=e, late=w, idle=i, memory=m)
        for r, (c, e, w, i, m) in enumerate(lines)
    ]


def _links(simulation: Simulation) -> list[LinkReport]:
    """Links that carry something, the one that its bytes take longest first."""
    machine, sent = simulation.machine, simulation.link_bytes
    taken = sent / machine.capacities
    order = np.argsort(-taken, kind="stable")[: int((sent > 0).sum())][:_MAX_LINKS]
    total = simulation.makespan or 1.0
    names = machine.resources
    return [
        LinkReport(
            name=names[int(i)].name, bytes=round(float(sent[i])), busy=float(taken[i]) / total
        )
        for i in order.tolist()
    ]


def render(report: SimulationReport) -> str:
    """The report for a terminal."""
    shared = "queueing for links" if report.contention else "no contention"
    bubble = "" if report.bubble is None else f"; bubble {percent_text(report.bubble)}"
    lines = [
        *wrapped(report.pattern + parameters_text(report.parameters)),
        f"  {counted(report.world, 'rank')} on {report.machine}, simulated, {shared}; "
        f"{counted(report.events, 'event')}",
        *wrapped(f"  applied: {', '.join(report.passes)}" if report.passes else ""),
        f"  takes {seconds_text(report.makespan)}{bubble}",
        *wrapped(f"  {report.bottleneck}"),
        *_uncosted(report.uncosted),
    ]
    lines += ["", "  critical path", *_path_table(report)]
    lines += ["", *_rank_table(report)]
    if report.links:
        lines += ["", *_link_table(report)]
    return "\n".join(lines)


def _uncosted(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    told = ", ".join(f"`{name}`" for name in names[:_STATEMENTS])
    return wrapped(
        f"  no cost is known of {told}, which counts as no time; give `--cost {names[0]}=3ms`"
    )


def _path_table(report: SimulationReport) -> list[str]:
    rows = [("line", "statement", "events", "time", "share", "mostly", "algorithm")]
    for one in report.critical[:_STATEMENTS]:
        cause = max(one.causes, key=lambda name: one.causes[name])
        share = one.seconds / report.makespan if report.makespan else 0.0
        rows.append(
            (
                _place(one, report.path),
                one.text,
                f"{one.events:,}",
                seconds_text(one.seconds),
                percent_text(share),
                cause if one.seconds else "",
                ", ".join(one.algorithms),
            )
        )
    more = len(report.critical) - _STATEMENTS
    return [*_table(rows, left=(1, 5, 6)), *([f"  and {more} more"] if more > 0 else [])]


def _place(one: StretchReport, main: str) -> str:
    """Line and column, with the file's name if it is another than the pattern's."""
    file = "" if one.path == main else f"{PurePath(one.path).name}:"
    return f"{file}{one.line}:{one.column}"


def _rank_table(report: SimulationReport) -> list[str]:
    rows: list[tuple[str, ...]] = [("rank", "compute", "exposed", "of it late", "idle", "memory")]
    shown = report.ranks
    if len(shown) > _RANKS:
        shown = _extremes(shown)
    for one in shown:
        times = (one.compute, one.exposed, one.late, one.idle)
        rows.append((str(one.rank), *map(seconds_text, times), bytes_text(one.memory)))
    more = len(report.ranks) - len(shown)
    return [*_table(rows), *([f"  and {counted(more, 'rank')} between these"] if more else [])]


def _extremes(ranks: Sequence[RankReport]) -> list[RankReport]:
    """The first and last rank, and those with the least and most of everything."""
    keys = ("compute", "exposed", "late", "idle", "memory")
    chosen = {0, len(ranks) - 1}
    for key in keys:
        values = [getattr(one, key) for one in ranks]
        chosen |= {values.index(min(values)), values.index(max(values))}
    return [ranks[i] for i in sorted(chosen)]


def _link_table(report: SimulationReport) -> list[str]:
    rows = [("fullest links", "bytes", "busy")]
    rows += [
        (one.name, bytes_text(one.bytes), percent_text(one.busy)) for one in report.links[:_LINKS]
    ]
    more = len(report.links) - _LINKS
    return [
        *_table(rows, left=(0,)),
        *([f"  and {counted(more, 'link')} more"] if more > 0 else []),
    ]


def _table(rows: Sequence[tuple[str, ...]], left: tuple[int, ...] = ()) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
