"""What pictures call things: events, times, sizes."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.program.columns import Array

STEPS = "steps"
LOCAL = {Kind.ACCUMULATE: "add"}


def name_of(program: Program, row: int) -> str:
    """An event in a few characters: `send → 1`, `all_reduce grad`, `forward 3`."""
    site = program.site_of(row)
    kind, peer = Kind(site.kind), int(program.peer[row])
    if kind.is_message:
        arrow = "→" if kind is Kind.SEND else "←"
        return f"{site.name} {arrow} {peer}"
    data = _data(program, row)
    if kind.is_collective:
        return f"{site.name} {data[0]}" if data else site.name
    arguments = program.arguments_of(row)
    if kind is Kind.COMPUTE:
        return str(arguments.get("label") or "compute")
    if kind is Kind.EXTERN:
        given = [str(v) for k, v in arguments.items() if type(v) is int and k != "cost"]
        return " ".join([site.name, *given])
    if kind is Kind.WAIT:
        return "wait"
    return " ".join([LOCAL.get(kind, kind.name.lower()), *data[-1:]])


def short_name(program: Program, row: int) -> str:
    """An event in as few characters as may be: `→1`, `ar`, `f3`."""
    name = name_of(program, row)
    kind = Kind(program.site_of(row).kind)
    if kind.is_message:
        return name.partition(" ")[2].replace(" ", "")
    word, _, rest = name.partition(" ")
    if kind.is_collective:
        return "".join(part[0] for part in word.split("_") if part)
    return word[0] + rest.replace(" ", ",") if kind is Kind.EXTERN else word


def tip_of(program: Program, row: int) -> str:
    """An event in a line: who, what, whom with, how much, and where it is written."""
    site = program.site_of(row)
    kind, peer, group = Kind(site.kind), int(program.peer[row]), int(program.group[row])
    parts = [f"rank {int(program.rank[row])}", program.text(row)]
    if kind.is_message:
        parts.append(f"{'to' if kind is Kind.SEND else 'from'} rank {peer}")
    elif kind.is_collective and group >= 0:
        size = int(program.groups.size(group))
        parts.append(f"group of {size:,} ranks" + (f", root {peer}" if peer >= 0 else ""))
    if (kind.is_message or kind.is_collective) and program.count[row]:
        parts.append(bytes_text(bytes_of(program, row)))
    if site.asynchronous:
        parts.append("asynchronous")
    return " · ".join([*parts, place_of(program, row)])


def place_of(program: Program, row: int) -> str:
    """`file:line:column` of an event's statement, without the folder."""
    site = program.site_of(row)
    line, column = site.source.position(site.span.start)
    return f"{PurePath(site.source.path).name}:{line}:{column}"


def bytes_of(program: Program, row: int) -> int:
    """The bytes of the largest operand of an event."""
    operands = program.operands
    at = slice(int(program.first[row]), int(program.first[row]) + int(program.count[row]))
    each = zip(operands.buffer[at].tolist(), operands.length[at].tolist(), strict=True)
    return max((program.buffer_of(b).dtype.itemsize * n for b, n in each), default=0)


def kinds_text(program: Program, rows: Array) -> str:
    """How many events of which kinds: `64 events: 32 send, 32 recv`."""
    kinds, counts = np.unique(program.kind[rows], return_counts=True)
    each = [
        f"{n:,} {Kind(k).name.lower()}"
        for k, n in zip(kinds.tolist(), counts.tolist(), strict=True)
    ]
    return f"{len(rows):,} events: {', '.join(each)}"


def counts_text(count: int) -> list[str]:
    """How many events, from the longest way to say it to the shortest."""
    short = str(count)
    for factor, sign in ((1_000_000, "M"), (1_000, "k")):
        if count >= factor:
            short = (
                f"{count / factor:.1f}{sign}" if count < 10 * factor else f"{count // factor}{sign}"
            )
            break
    return [f"{count:,} events", f"{count:,}", short]


def _data(program: Program, row: int) -> list[str]:
    first, count = int(program.first[row]), int(program.count[row])
    numbers = program.operands.buffer[first : first + min(count, 4)].tolist()
    return list(dict.fromkeys(program.buffer_of(number).name for number in numbers))


def time_text(value: float, unit: str) -> str:
    """A time: `step 12`, or seconds with a unit that fits."""
    if unit == STEPS:
        return f"step {value:.0f}"
    if not value:
        return "0"
    for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= 0.9995 * factor:  # what three digits would round to 1000 of the smaller
            plain = abs(value) >= 999.5 * factor
            return f"{value:.0f} s" if plain else f"{value / factor:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"


def bytes_text(value: int) -> str:
    """A size: `4 MiB`."""
    size, units = float(value), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.3g} {units[0]}" if size < 999.5 else f"{size:.0f} {units[0]}"
