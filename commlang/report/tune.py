"""The table of `commlang tune` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.report.text import bytes_text, counted, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.tuning.table import Row, Table, Times

HEAD = ("ranks", "bytes", "pattern", "p10", "p50", "p90", "gain")


def render(table: Table, *, everything: bool = False) -> str:
    """For each world and size the backend's own and what is taken, or else all patterns.

    `*` marks what is taken; the gain is over the backend's own, by `Times.mean`.
    """
    host = table.host
    lines = [line for row in table.rows for line in _lines(table, row, everything)]
    return "\n".join(
        [
            f"{table.collective} of {table.dtype} on {table.backend}, {table.device}; "
            f"torch {table.torch}, {host.cpu}, {counted(host.cpus, 'CPU')}",
            "  times of one call on the slowest rank; * is what `auto` takes; gain by means",
            "",
            *_aligned([HEAD, *lines]),
        ]
    )


def _lines(table: Table, row: Row, everything: bool) -> list[tuple[str, ...]]:
    chosen = table.choose(row.world, row.bytes).names
    taken = chosen[0] if chosen else table.collective
    own = row.times[table.collective]
    fastest = sorted(row.times, key=lambda name: row.times[name].mean) if everything else []
    shown = dict.fromkeys([table.collective, taken, *fastest])
    place = (str(row.world), bytes_text(row.bytes))
    return [
        (*(place if at == 0 else ("", "")), *_cells(name, name == taken, row.times[name], own))
        for at, name in enumerate(shown)
    ]


def _cells(name: str, taken: bool, times: Times, own: Times) -> tuple[str, ...]:
    shown = (seconds_text(t) for t in (times.p10, times.p50, times.p90))
    return (f"{name} *" if taken else name, *shown, f"{own.mean / times.mean:.2f}x")


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if at == 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
