"""The load of a machine as text: for each kind of link how much it carries, and the busiest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.draw.topology import make_load
from commlang.draw.words import bytes_text, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.draw.subject import Subject
    from commlang.draw.topology import Load
    from commlang.topology.network import Tier

_HEAD = ("links", "class", "channels", "used", "carry", "each at most", "busy at most")


def text(subject: Subject) -> str:
    """A line for each kind of link, from the devices outwards."""
    load = make_load(subject)
    rows = [_HEAD, *(_row(load, *section) for section in sections(load))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    notes = [load.bottleneck()] + ([load.algorithms] if load.algorithms else [])
    return "\n".join([subject.title, load.told(), "", *lines, "", *notes, ""])


def sections(load: Load) -> Iterator[tuple[str, Tier, slice]]:
    """The channels of a machine by kind, named by what they join."""
    inner = "device"
    for tier in load.tiers:
        name, end = tier.level.name, tier.first + tier.channels
        match tier.level.kind:
            case "bus":
                yield f"{name} bus", tier, slice(tier.first, end)
            case "full" | "ring" | "torus":
                yield f"{inner} – {inner}", tier, slice(tier.first, end)
            case _:
                ports = tier.first + 2 * tier.inputs
                leaf = f"{name} leaf" if tier.leaves > 1 else name
                yield f"{inner} – {leaf}", tier, slice(tier.first, ports)
                if tier.uplinks:
                    yield f"{leaf} – {name}", tier, slice(ports, end)
        inner = name


def _row(load: Load, name: str, tier: Tier, part: slice) -> tuple[str, ...]:
    size, seconds = load.bytes[part], load.seconds[part]
    longest = float(seconds.max(initial=0.0))
    return (
        name,
        load.machine.links[tier.link].name,
        f"{len(size):,}",
        f"{np.count_nonzero(size):,}",
        bytes_text(int(size.sum())),
        bytes_text(int(size.max(initial=0))),
        time_text(longest, "s"),
    )
