"""The report of a run for people: what was proven, a table of statements, totals, contracts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from commlang.verify.values import format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commlang.report.predict import Prediction
    from commlang.report.run import Contract, HostTopology, RunReport, Statement, Totals

WIDTH = 100
"""Columns that the text keeps to, where names do not make it wider."""
_FAILURES = 8
_RATES = (("GB/s", 1.0), ("MB/s", 1e-3), ("kB/s", 1e-6))


def render(report: RunReport) -> str:
    """The report for a terminal."""
    lines = [
        *wrapped(report.pattern + parameters_text(report.parameters)),
        f"  {counted(report.world, 'rank')} on {report.backend}, {report.device}, "
        f"{counted(len(report.hosts), 'host')}; torch {report.torch}",
        *(line for host in report.topology for line in wrapped("  " + _host(host))),
        f"  proven before the run: {', '.join(report.proofs)} ({counted(report.events, 'event')})",
        *_extern_lines(report.externs),
        "",
    ]
    if report.statements:
        lines += [*_table(report.statements, report.path), ""]
    lines += wrapped("  " + _totals_line(report.totals))
    if report.prediction is not None:
        lines += ["", *_prediction(report.prediction, report.path), ""]
    lines += _contract_lines(report.contracts)
    return "\n".join(lines)


def parameters_text(values: Mapping[str, Any]) -> str:
    """` (n = 1Mi, op = sum)`; empty if there are none."""
    told = ", ".join(f"{name} = {_cut(format_value(value), 40)}" for name, value in values.items())
    return f" ({told})" if told else ""


def wrapped(text: str) -> list[str]:
    """Lines of at most WIDTH columns; those after the first stand two further in."""
    indent = " " * (len(text) - len(text.lstrip()))
    return wrap(text, WIDTH, subsequent_indent=indent + "  ", break_on_hyphens=False)


_PATHS = {
    "PIX": "PCIe, one bridge",
    "PXB": "PCIe, several bridges",
    "PHB": "PCIe, over the host bridge",
    "NODE": "PCIe, between host bridges",
    "SYS": "PCIe, between NUMA nodes",
}


def _host(found: HostTopology) -> str:
    """`node1: 2 × NVIDIA H100; 18 NVLinks (1 pair); mlx5_0:1 InfiniBand …; eth0 25 Gb/s`."""
    names = [f"{count} × {name}" for name, count in Counter(found.gpus).items()]
    links = [f"{_link(kind)} ({counted(pairs, 'pair')})" for kind, pairs in found.links.items()]
    return f"{found.host}: " + "; ".join([*names, *links, *found.infiniband, *found.network])


def _link(kind: str) -> str:
    count = kind.removeprefix("NV")
    if kind.startswith("NV") and count.isdecimal():
        return counted(int(count), "NVLink")
    return _PATHS.get(kind, kind)


def _extern_lines(externs: Mapping[str, str | None]) -> list[str]:
    bound = [f"{name} = {target}" for name, target in externs.items() if target]
    idle = [f"`{name}`" for name, target in externs.items() if not target]
    lines = wrapped(f"  externs: {', '.join(bound)}") if bound else []
    if idle:
        does = "takes its" if len(idle) == 1 else "take their"
        told = f"  without a Python function: {', '.join(idle)}, which {does} cost's time"
        lines += wrapped(told)
    return lines


def _table(statements: Sequence[Statement], main: str) -> list[str]:
    """Aligned rows; statements of an imported file stand under its name."""
    header = ("line", "statement", "calls", "bytes", "median", "max", "algbw", "busbw")
    rows = [
        (
            f"{s.line}:{s.column}",
            s.text,
            f"{s.calls:,}",
            bytes_text(s.size) if s.size else "",
            seconds_text(s.median),
            seconds_text(s.max),
            _bandwidth(s.algbw),
            _bandwidth(s.busbw),
        )
        for s in statements
    ]
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    widths[1] = min(widths[1], max(20, WIDTH - 2 * len(header) - sum(widths) + widths[1]))
    lines = ["  " + _aligned(header, widths)]
    file = main
    for statement, row in zip(statements, rows, strict=True):
        if not same_file(statement.path, file):
            file = statement.path
            lines.append(f"  {short_path(file)}")
        lines.append("  " + _aligned(row, widths))
    return lines


def _prediction(found: Prediction, main: str) -> list[str]:
    """What was predicted of each statement, beside what was measured."""
    header = ("line", "statement", "measured", "predicted", "error")
    statements = [s for s in found.statements if s.predicted is not None]
    shown = [*statements, found.whole]
    rows = [
        (
            f"{s.line}:{s.column}" if s.line else "",
            s.text,
            seconds_text(s.measured or 0.0),
            seconds_text(s.predicted or 0.0),
            "" if s.error is None else f"{s.error:+.0%}",
        )
        for s in shown
    ]
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    widths[1] = min(widths[1], max(20, WIDTH - 2 * len(header) - sum(widths) + widths[1]))
    lines = [f"  predicted on {found.machine}:", "  " + _aligned(header, widths)]
    file = main
    for statement, row in zip(shown, rows, strict=True):
        if statement.path and not same_file(statement.path, file):
            file = statement.path
            lines.append(f"  {short_path(file)}")
        lines.append("  " + _aligned(row, widths))
    if found.error is not None:
        lines.append(f"  the statements are off by {found.error:.0%} in the middle")
    if found.without_cost:
        lines += wrapped(f"  taken to take no time: {', '.join(found.without_cost)}")
    return lines


def short_path(path: str) -> str:
    """A path as seen from the working directory, if it lies below."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def same_file(a: str, b: str) -> bool:
    """Whether two paths of sources name one file."""
    return a == b or Path(a).resolve() == Path(b).resolve()


def _aligned(row: Iterable[str], widths: Sequence[int]) -> str:
    cells = [
        _cut(text, width).ljust(width) if number == 1 else text.rjust(width)
        for number, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _bandwidth(value: float | None) -> str:
    if value is None:
        return ""
    unit, size = next(((u, s) for u, s in _RATES if value >= 0.9995 * s), _RATES[-1])
    return f"{value / size:.3g} {unit}"


def _totals_line(totals: Totals) -> str:
    if not totals.iterations:
        return "run once, to check it; not timed (--iters 0)"
    sent = f"; {bytes_text(totals.bytes_sent)} sent point to point" if totals.bytes_sent else ""
    return (
        f"{counted(totals.iterations, 'iteration')}: median {seconds_text(totals.median)}, "
        f"min {seconds_text(totals.min)}, max {seconds_text(totals.max)} (slowest rank){sent}"
    )


def _verdict(contract: Contract) -> str:
    if not contract.ok:
        return "FAILED"
    return "not checked on these data" if contract.unchecked else "holds on every rank"


def _contract_lines(contracts: Sequence[Contract]) -> list[str]:
    if not contracts:
        return ["  the pattern has no `ensure`, so its result was not checked"]
    lines: list[str] = []
    for contract in contracts:
        lines += wrapped(f"  {contract.text}: {_verdict(contract)}")
        if contract.ok and contract.unchecked:
            lines += wrapped(f"    {contract.unchecked}")
        if not contract.ok:
            lines.append(f"    at {contract.where}")
            for failure in contract.failures[:_FAILURES]:
                lines += wrapped(f"    {failure.text}")
            more = len(contract.failures) - _FAILURES
            if more > 0:
                lines.append(f"    and {more:,} more")
    return lines


def counted(number: int, thing: str) -> str:
    """`1 rank`, `2 ranks`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def seconds_text(value: float) -> str:
    """A duration with three significant digits: `1.25 ms`; of seconds all before the point."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * size:  # 999.9 µs are `1 ms`, where three digits would be `1e+03 µs`
            whole = 999.5 <= value < 1e9
            return f"{value:.0f} s" if whole else f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.0f} ns"


def percent_text(part: float) -> str:
    """A part of one with three significant digits: `12.5 %`."""
    if 0 < part < 0.0005:
        return "< 0.1 %"
    return f"{100 * part:.3g} %" if part < 0.9995 else "100 %"


def bytes_text(value: int) -> str:
    """A size in binary units: `1.5 MiB`."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        size = 1 << power
        if value >= size:  # all digits of 1,010 GiB, where three would be 1.01e+03
            return f"{value / size:.{4 if value >= 999.5 * size else 3}g} {unit}"
    return f"{value} B"
