"""Machines as text for a terminal, and as JSON."""

from __future__ import annotations

import json
from textwrap import wrap
from typing import TYPE_CHECKING

from commlang.topology.quantities import told

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlang.topology import Level, Machine

WIDTH = 100


def render_list(machines: Sequence[Machine]) -> str:
    """The machines, each with its size and what it is; ends without a newline."""
    rows = [(machine.name, f"{machine.size:,}", machine.about) for machine in machines]
    name, size = (max(len(row[n]) for row in rows) for n in (0, 1))
    lines = [f"{'machine':<{name}}  {'devices':>{max(size, 7)}}"]
    for row in rows:
        head = f"{row[0]:<{name}}  {row[1]:>{max(size, 7)}}  "
        lines += wrap(row[2], WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
    return "\n".join(lines)


def render_machine(machine: Machine) -> str:
    """One machine: levels, links, compute and sources; ends without a newline."""
    blocks = [
        [f"{machine.name}: up to {machine.size:,} devices", *_wrapped(machine.about)],
        ["levels, the innermost first", *_table(_levels(machine))],
        ["links, in one direction", *_table(_links(machine))],
        _compute(machine),
        _collectives(machine),
        _sources(machine),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block)


def to_json(machines: Machine | Sequence[Machine]) -> str:
    """A machine, or several, as JSON: numbers in SI, nothing left out, and `devices` in all."""
    from commlang.topology import Machine

    if isinstance(machines, Machine):
        return json.dumps(_fields(machines), indent=2, ensure_ascii=False)
    return json.dumps([_fields(machine) for machine in machines], indent=2, ensure_ascii=False)


def _fields(machine: Machine) -> dict[str, object]:
    return {**machine.model_dump(mode="json"), "devices": machine.size}


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return [
        "  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True))
        for row in rows
    ]


def _levels(machine: Machine) -> Iterable[Sequence[str]]:
    yield "name", "kind", "joins", "link", ""
    inner = "devices"
    for level in machine.levels:
        size = " x ".join(f"{side:,}" for side in level.size)
        yield level.name, level.kind, f"{size} {inner}", level.link, ", ".join(_details(level))
        inner = f"of `{level.name}`"


def _details(level: Level) -> Iterable[str]:
    if level.ports > 1:
        yield f"{level.ports} ports each"
    if level.leaf:
        yield f"leaf switches of {level.leaf}"
    if level.oversubscription != 1:
        yield f"oversubscription {level.oversubscription:g}"
    if not level.wrap:
        yield "ends not joined"
    if level.carries:
        yield "carries what goes farther"
    if level.hop is not None:
        yield f"a hop {told(level.hop, 's')}"


def _links(machine: Machine) -> Iterable[Sequence[str]]:
    yield "name", "bandwidth", "latency", "overhead", "gap"
    for link in machine.links:
        times = (told(seconds, "s") for seconds in (link.latency, link.overhead, link.gap))
        yield link.name, told(link.bandwidth, "B/s"), *times


def _compute(machine: Machine) -> list[str]:
    compute = machine.compute
    rows = [(dtype, told(rate, "flop/s")) for dtype, rate in compute.flops.items()]
    if compute.memory_bandwidth is not None:
        rows.append(("memory bandwidth", told(compute.memory_bandwidth, "B/s")))
    if compute.memory is not None:
        rows.append(("memory", told(compute.memory, "B")))
    if not rows:
        return []
    rows.append(("efficiency", f"{compute.efficiency:g}"))
    return ["each device", *_table(rows)]


def _collectives(machine: Machine) -> list[str]:
    if not machine.collectives:
        return []
    rows = [("name", "ranks", "measured")]
    for one in machine.collectives:
        line = f"{told(one.alpha or 0, 's')} + {one.beta:.4g} s per byte" if one.beta else ""
        rows.append((one.name, str(one.world), line or f"{len(one.points)} sizes"))
    return ["collectives", *_table(rows)]


def _sources(machine: Machine) -> list[str]:
    given = [(f"link {link.name}", link.source) for link in machine.links]
    given += [(f"level {level.name}", level.source) for level in machine.levels]
    given.append(("devices", machine.compute.source))
    lines = [
        line for what, text in given if text for line in (f"  {what}", *_wrapped(text, "    "))
    ]
    return ["sources", *lines] if lines else []
