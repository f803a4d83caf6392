"""The report of a run: what was proven, how long each statement took, whether contracts held."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from commlang.verify.values import format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commlang.execute.session import Outcome, RankResult
    from commlang.execute.settings import Settings
    from commlang.plan import Plan

VERSION = 1
WIDTH = 100
"""Columns that the text keeps to, where names do not make it wider."""
_FAILURES = 8
_RATES = (("GB/s", 1.0), ("MB/s", 1e-3), ("kB/s", 1e-6))

# busbw / algbw by operation for n ranks, as in nccl-tests
# (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md); 1 for all others.
_BUS_FACTOR = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "all_gather_into_tensor": lambda n: (n - 1) / n,
    "all_gather_single": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "reduce_scatter_tensor": lambda n: (n - 1) / n,
    "reduce_scatter_single": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "all_to_all_single": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
}


class Statement(BaseModel):
    """One statement over all ranks and iterations.

    Times are seconds per call: the median over all calls of all ranks and the largest. `size` is
    bytes per call, `algbw` size / median time and `busbw` algbw times the operation's bus factor,
    in GB/s (10**9), None where nothing moves.
    """

    path: str
    line: int
    column: int
    text: str
    operation: str
    ranks: int
    calls: int
    size: int
    median: float
    max: float
    algbw: float | None
    busbw: float | None


class Contract(BaseModel):
    """One `ensure` over all ranks; `failures` says where it did not hold."""

    where: str
    text: str
    ok: bool
    failures: list[str]


class Totals(BaseModel):
    """Whole runs of the pattern, in seconds: over iterations, of the slowest rank each."""

    iterations: int
    median: float
    min: float
    max: float
    bytes_sent: int


class RunReport(BaseModel):
    """Everything that a run tells, for `--json`.

    `externs` holds the Python function of each extern that is called, None for one that only took
    the time of its cost.
    """

    version: Literal[1] = VERSION
    commlang: str
    torch: str
    pattern: str
    path: str
    digest: str
    fingerprint: str
    world: int
    backend: str
    device: str
    hosts: list[str]
    seed: int
    parameters: dict[str, Any]
    externs: dict[str, str | None]
    events: int
    proofs: list[str]
    statements: list[Statement]
    totals: Totals
    contracts: list[Contract]
    ok: bool


def make_report(plan: Plan, outcome: Outcome, settings: Settings) -> RunReport:
    """The report of a run, from what its ranks found."""
    totals = [r.times.totals for r in outcome.ranks]
    slowest = [max(times) for times in zip(*totals, strict=True)]
    return RunReport(
        commlang=plan.commlang,
        torch=outcome.torch,
        pattern=plan.pattern,
        path=plan.path,
        digest=plan.digest,
        fingerprint=plan.fingerprint,
        world=plan.world,
        backend=outcome.backend,
        device=outcome.device.split(":")[0],
        hosts=sorted({r.host for r in outcome.ranks}),
        seed=settings.seed,
        parameters=plan.parameters,
        externs=_externs(plan, dict(settings.externs)),
        events=plan.events,
        proofs=list(plan.proofs),
        statements=_statements(outcome.ranks),
        totals=Totals(
            iterations=len(slowest),
            median=median(slowest) if slowest else 0.0,
            min=min(slowest, default=0.0),
            max=max(slowest, default=0.0),
            bytes_sent=_bytes_sent(plan),
        ),
        contracts=_contracts(outcome.ranks),
        ok=outcome.ok,
    )


def _externs(plan: Plan, bound: dict[str, str]) -> dict[str, str | None]:
    from commlang.operations import Kind

    called = (site.name for site in plan.program().sites if site.kind is Kind.EXTERN)
    return {name: bound.get(name) for name in dict.fromkeys(called)}


def _statements(ranks: Sequence[RankResult]) -> list[Statement]:
    merged: dict[tuple[Any, ...], list[Any]] = {}
    for result in ranks:
        for timing in result.times.statements:
            key = (*timing.where, timing.operation, timing.text)
            merged.setdefault(key, []).append(timing)
    found = [_statement(timings) for timings in merged.values()]
    files = list(dict.fromkeys(s.path for s in found))
    return sorted(
        (s for s in found if s.calls), key=lambda s: (files.index(s.path), s.line, s.column)
    )


def _statement(timings: list[Any]) -> Statement:
    first = timings[0]
    durations = [d for timing in timings for d in timing.durations]
    middle = median(durations) if durations else 0.0
    size = max(t.size for t in timings)
    factor = _BUS_FACTOR.get(first.operation)
    ranks = max(t.ranks for t in timings)
    moves = size > 0 and middle > 0 and ranks > 1
    algbw = size / middle / 1e9 if moves else None
    busbw = algbw * (factor(ranks) if factor else 1.0) if algbw is not None else None
    path, line, column = first.where
    return Statement(
        path=path,
        line=line,
        column=column,
        text=first.text,
        operation=first.operation,
        ranks=ranks,
        calls=max(t.calls for t in timings),
        size=size,
        median=middle,
        max=max(durations, default=0.0),
        algbw=algbw,
        busbw=busbw,
    )


def _contracts(ranks: Sequence[RankResult]) -> list[Contract]:
    merged: dict[str, Contract] = {}
    for result in ranks:
        for found in result.contracts:
            contract = merged.setdefault(
                found.where, Contract(where=found.where, text=found.text, ok=True, failures=[])
            )
            if found.failure is not None:
                contract.ok = False
                contract.failures.append(str(found.failure))
    return list(merged.values())


def _bytes_sent(plan: Plan) -> int:
    """Bytes of all point-to-point messages of one run (collectives move theirs in secret)."""
    import numpy as np

    from commlang.operations import Kind

    program = plan.program()
    rows = np.flatnonzero(program.kind == Kind.SEND)
    itemsize = np.array([d.itemsize if d else 0 for d in program.site_dtype])
    if not len(rows):
        return 0
    return int((program.operands.length[program.first[rows]] * itemsize[program.site[rows]]).sum())


# ------------------------------------------------------------------------ text


def render(report: RunReport) -> str:
    """The report for a terminal."""
    lines = [
        *wrapped(report.pattern + parameters_text(report.parameters)),
        f"  {counted(report.world, 'rank')} on {report.backend}, {report.device}, "
        f"{counted(len(report.hosts), 'host')}; torch {report.torch}",
        f"  proven before the run: {', '.join(report.proofs)} ({counted(report.events, 'event')})",
        *_extern_lines(report.externs),
        "",
    ]
    if report.statements:
        lines += [*_table(report.statements, report.path), ""]
    lines += wrapped("  " + _totals_line(report.totals))
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


def _extern_lines(externs: Mapping[str, str | None]) -> list[str]:
    bound = [f"{name} = {target}" for name, target in externs.items() if target]
    idle = [f"`{name}`" for name, target in externs.items() if not target]
    lines = wrapped(f"  externs: {', '.join(bound)}") if bound else []
    if idle:
        does = "takes its" if len(idle) == 1 else "take their"
        lines += wrapped(
            f"  without a Python function: {', '.join(idle)}, which {does} cost's time"
        )
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
            lines.append(f"  {file}")
        lines.append("  " + _aligned(row, widths))
    return lines


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
    unit, size = next(((u, s) for u, s in _RATES if value >= s), _RATES[-1])
    return f"{value / size:.3g} {unit}"


def _totals_line(totals: Totals) -> str:
    if not totals.iterations:
        return "run once, to check it; not timed (--iters 0)"
    sent = f"; {bytes_text(totals.bytes_sent)} sent point to point" if totals.bytes_sent else ""
    return (
        f"{counted(totals.iterations, 'iteration')}: median {seconds_text(totals.median)}, "
        f"min {seconds_text(totals.min)}, max {seconds_text(totals.max)} (slowest rank){sent}"
    )


def _contract_lines(contracts: Sequence[Contract]) -> list[str]:
    if not contracts:
        return ["  the pattern has no `ensure`, so its result was not checked"]
    lines: list[str] = []
    for contract in contracts:
        verdict = "holds on every rank" if contract.ok else "FAILED"
        lines += wrapped(f"  {contract.text}: {verdict}")
        if not contract.ok:
            lines.append(f"    at {contract.where}")
            for failure in contract.failures[:_FAILURES]:
                lines += wrapped(f"    {failure}")
            more = len(contract.failures) - _FAILURES
            if more > 0:
                lines.append(f"    and {more:,} more")
    return lines


def counted(number: int, thing: str) -> str:
    """`1 rank`, `2 ranks`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def seconds_text(value: float) -> str:
    """A duration with three significant digits: `1.25 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.0f} ns"


def bytes_text(value: int) -> str:
    """A size in binary units: `1.5 MiB`."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value} B"
