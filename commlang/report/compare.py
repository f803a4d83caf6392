"""What `commlang compare` prints: a table for a terminal or a page, and JSON."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from commlang.compare import Column, Failed, On, Spread
from commlang.compare.proofs import TARGETS
from commlang.records import record
from commlang.report.text import bytes_text, parameters_text, seconds_text, wrapped
from commlang.verify.values import format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

VERSION = 1
"""Of the JSON; a change that could break a reader makes it 2."""

NOTHING = "-"


@record
class Measured:
    """The median time of a run on real ranks, in seconds, and on what; or why there is none.

    `code` is the exit code of a run that failed; 0 if it succeeded, or is too large to be tried.
    """

    seconds: float | None
    reason: str = ""
    code: int = 0
    where: str = ""


@record
class Comparison:
    """All columns in order; a pattern that is wrong has a Failed in place of one.

    `machines` are the names of the machines, in order; `measured` is by label.
    """

    columns: tuple[Column | Failed, ...]
    machines: tuple[str, ...] = ()
    measured: dict[str, Measured] | None = None

    @property
    def sound(self) -> tuple[Column, ...]:
        """The columns of patterns that are right."""
        return tuple(column for column in self.columns if isinstance(column, Column))

    @property
    def failed(self) -> tuple[Failed, ...]:
        """All that could not be told, of patterns and on machines, each reason once."""
        wrong = [column for column in self.columns if isinstance(column, Failed)]
        on = [o for column in self.sound for o in column.on if isinstance(o, Failed)]
        runs = [
            Failed(label, m.reason, m.code) for label, m in (self.measured or {}).items() if m.code
        ]
        return tuple({f.reason: f for f in (*wrong, *on, *runs)}.values())


def render(comparison: Comparison) -> str:
    """Aligned columns under what was compared; ends without a newline."""
    common = _common(comparison.sound)
    told = [f"all: {parameters_text(common)[2:-1]}"] if common else []
    told += [f"{c.label}: {text}" for c in comparison.sound if (text := _subject(c, common))]
    head = [line for text in told for line in wrapped(text)]
    rows = _rows(comparison)
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    table = [_aligned(row, widths) for row in rows]
    return "\n".join([*head, *([""] if head else []), *table, *_uncosted(comparison)])


def _uncosted(comparison: Comparison) -> list[str]:
    """What the times leave out."""
    on = [o for column in comparison.sound for o in column.on if isinstance(o, On)]
    names = sorted({name for o in on for name in o.uncosted})
    if not names:
        return []
    told = ", ".join(f"`{name}`" for name in names)
    return ["", *wrapped(f"taken to need no time, since they have no `cost`: {told}")]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *cells = (
        cell.rjust(width) if n else cell.ljust(width)
        for n, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([name, *cells]).rstrip()


def render_markdown(comparison: Comparison) -> str:
    """The table for a page of Markdown; ends without a newline."""
    first, *rest = _rows(comparison)
    lines = [first, ["---", *("---:" for _ in first[1:])], *rest]
    return "\n".join("| " + " | ".join(_cell(c) for c in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return (text.strip() or " ").replace("|", r"\|")


def _common(columns: Sequence[Column]) -> dict[str, Any]:
    """Parameters of at least two patterns that have one value wherever they are."""
    values: dict[str, list[Any]] = {}
    for column in columns:
        for name, value in column.parameters.items():
            values.setdefault(name, []).append(value)
    alike = {name: v for name, v in values.items() if len(v) > 1 and all(x == v[0] for x in v)}
    return {name: found[0] for name, found in alike.items()}


def _subject(column: Column, common: dict[str, Any]) -> str:
    """The pattern, if the label is another name, and its own values; empty if there are none."""
    pattern = [] if column.pattern == column.label else [column.pattern]
    own = {n: value for n, value in column.parameters.items() if n not in common}
    return " ".join([*pattern, *([parameters_text(own)[2:-1]] if own else [])])


def _rows(comparison: Comparison) -> list[list[str]]:
    """The header, then one row for each figure."""
    rows = [["", *(c.label if isinstance(c, Column) else c.name for c in comparison.columns)]]

    def row(name: str, tell: Callable[[Column], str]) -> None:
        cells = (tell(c) if isinstance(c, Column) else "error" for c in comparison.columns)
        rows.append([name, *cells])

    row("ranks", lambda c: f"{c.world:,}")
    row("events", lambda c: f"{c.events:,}")
    row("sent per rank", lambda c: _bytes(c.sent))
    row("messages per rank", lambda c: _counts(c.messages))
    row("collectives per rank", lambda c: _counts(c.collectives))
    row("peak memory per rank", lambda c: _bytes(c.memory))
    for n, machine in enumerate(comparison.machines):
        rows.append([f"on {machine}", *("" for _ in comparison.columns)])
        for link in _links(comparison, n):
            row(f"  over {link}", lambda c, n=n, link=link: _on(c, n, lambda o: _link(o, link)))
        if size := _device_memory(comparison, n):
            row(f"  part of {_si(size)} memory", lambda c, n=n: _on(c, n, partial(_part, c)))
        row("  time", lambda c, n=n: _on(c, n, lambda o: seconds_text(o.makespan)))
        row("  computing", lambda c, n=n: _on(c, n, lambda o: _seconds(o.computing)))
        row("  exposed communication", lambda c, n=n: _on(c, n, lambda o: _seconds(o.exposed)))
    if comparison.measured is not None:
        measured = comparison.measured
        where = next((m.where for m in measured.values() if m.where), "local ranks")
        row(f"measured on {where}", lambda c: _measured(measured[c.label]))
    for model in TARGETS:
        row(f"under {model}", lambda c, model=model: c.proofs.ends[model])
    row("contract", lambda c: c.proofs.contract)
    return rows


def _links(comparison: Comparison, n: int) -> Iterable[str]:
    on = [column.on[n] for column in comparison.sound]
    return dict.fromkeys(name for o in on if isinstance(o, On) for name in o.links)


def _on(column: Column, n: int, tell: Callable[[On], str]) -> str:
    on = column.on[n]
    return tell(on) if isinstance(on, On) else "does not fit"


def _device_memory(comparison: Comparison, n: int) -> float | None:
    on = [column.on[n] for column in comparison.sound]
    return next((o.memory for o in on if isinstance(o, On)), None)


def _si(size: float) -> str:
    return f"{size / 1e9:.3g} GB"


def _part(column: Column, on: On) -> str:
    return f"{column.memory.max / on.memory:.0%}" if on.memory else NOTHING


def _link(on: On, link: str) -> str:
    return bytes_text(on.links[link]) if on.links.get(link) else NOTHING


def _measured(measured: Measured) -> str:
    if measured.seconds is not None:
        return seconds_text(measured.seconds)
    return "failed" if measured.code else "too large"


def _bytes(spread: Spread) -> str:
    return _spread(spread, lambda value: bytes_text(round(value)))


def _seconds(spread: Spread) -> str:
    return _spread(spread, seconds_text)


def _counts(spread: Spread) -> str:
    return _spread(spread, lambda value: f"{value:,.4g}" if value % 1 else f"{value:,.0f}")


def _spread(spread: Spread, tell: Callable[[float], str]) -> str:
    """`8 MiB`, or `4 / 6.5 / 8 MiB` as least, mean and most; a unit that they share once."""
    told = [tell(value) for value in (spread.min, spread.mean, spread.max)]
    if told[0] == told[2]:
        return told[0]
    units = {text.partition(" ")[2] for text in told}
    if len(units) == 1:
        told[:2] = [text.partition(" ")[0] for text in told[:2]]
    return " / ".join(told)


def to_json(comparison: Comparison) -> str:
    """Everything, in bytes and seconds; of a pattern that failed its name and why."""
    measured = comparison.measured or {}
    columns = [_fields(column, measured.get(_name(column))) for column in comparison.columns]
    return json.dumps({"version": VERSION, "patterns": columns}, indent=2, ensure_ascii=False)


def _name(column: Column | Failed) -> str:
    return column.label if isinstance(column, Column) else column.name


def _fields(column: Column | Failed, measured: Measured | None) -> dict[str, Any]:
    if isinstance(column, Failed):
        return {"label": column.name, "error": column.reason}
    return {
        "label": column.label,
        "pattern": column.pattern,
        "parameters": {name: format_value(v) for name, v in column.parameters.items()},
        "world": column.world,
        "events": column.events,
        "sent": _spread_fields(column.sent),
        "messages": _spread_fields(column.messages),
        "collectives": _spread_fields(column.collectives),
        "peak_memory": _spread_fields(column.memory),
        "on": [_on_fields(on) for on in column.on],
        "measured": None if measured is None else _measured_fields(measured),
        "ends": column.proofs.ends,
        "contract": column.proofs.contract,
    }


def _spread_fields(spread: Spread) -> dict[str, float]:
    return {"min": spread.min, "mean": spread.mean, "max": spread.max}


def _on_fields(on: On | Failed) -> dict[str, Any]:
    if isinstance(on, Failed):
        return {"machine": on.name, "error": on.reason}
    return {
        "machine": on.machine,
        "links": on.links,
        "makespan": on.makespan,
        "computing": _spread_fields(on.computing),
        "exposed": _spread_fields(on.exposed),
        "bottleneck": on.bottleneck,
        "device_memory": on.memory,
        "uncosted": on.uncosted,
    }


def _measured_fields(measured: Measured) -> dict[str, Any]:
    return {"seconds": measured.seconds, "on": measured.where, "error": measured.reason or None}
