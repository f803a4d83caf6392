"""Tables and JSON of `commlang bench`, in the manner of nccl-tests.

Columns, bandwidth factors and JSON keys are those of nccl-tests:
https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from __future__ import annotations

from statistics import mean, quantiles
from typing import TYPE_CHECKING, Any

from commlang.records import record
from commlang.report.run import bus_factor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.execute.bench import Sample

PERCENTILES = (10, 50, 90, 99)


@record
class Row:
    """One pattern at one size: `size` bytes of `count` elements; `time` in seconds per run.

    `time` is the mean over all ranks and runs, as nccl-tests has it by default; `percentiles` are
    over all of them. `in_place` tells that the pattern has one tensor.
    """

    name: str
    size: int
    count: int
    type: str
    redop: str
    root: int
    ranks: int
    operation: str
    in_place: bool
    time: float
    percentiles: dict[int, float]
    wrong: int | None
    runs: int

    @property
    def alg_bw(self) -> float:
        """GB/s (10**9)."""
        return self.size / self.time / 1e9

    @property
    def bus_bw(self) -> float:
        """GB/s (10**9) over the busiest link."""
        return self.alg_bw * bus_factor(self.operation, self.ranks)


def spread(samples: Sequence[Sample]) -> tuple[float, dict[int, float]]:
    """Mean and percentiles of all ranks' runs, in seconds."""
    seconds = [second for sample in samples for second in sample.seconds]
    if len(seconds) < 2:
        return seconds[0], dict.fromkeys(PERCENTILES, seconds[0])
    cuts = quantiles(seconds, n=100, method="inclusive")
    return mean(seconds), {p: cuts[p - 1] for p in PERCENTILES}


def header(facts: Sequence[str]) -> str:
    """What comes before the rows of a table: facts of the environment, then the columns' names."""
    half = f"{'time':>7} {'algbw':>7} {'busbw':>7} {'#wrong':>6}"
    units = f"{'(us)':>7} {'(GB/s)':>7} {'(GB/s)':>7} {'':>6}"
    left = f"{'size':>12} {'count':>12} {'type':>9} {'redop':>7} {'root':>6}"
    under = f"{'(B)':>12} {'(elements)':>12} {'':>9} {'':>7} {'':>6}"
    lines = [f"# {fact}" for fact in facts]
    lines += [
        "#",
        f"# {'':>50} {'out-of-place':^30}  {'in-place':^30}",
        f"# {left}  {half}  {half}    p10     p50     p90     p99",
        f"# {under}  {units}  {units}   (us)    (us)    (us)    (us)",
    ]
    return "\n".join(lines)


def line(row: Row) -> str:
    """A row of the table; the form that the pattern does not have is N/A."""
    wrong = "N/A" if row.wrong is None else str(row.wrong)
    numbers = (_time(row.time), f"{row.alg_bw:.2f}", f"{row.bus_bw:.2f}")
    mine = " ".join(f"{text:>7}" for text in numbers) + f" {wrong:>6}"
    none = f"{'N/A':>7} {'N/A':>7} {'N/A':>7} {'N/A':>6}"
    halves = (none, mine) if row.in_place else (mine, none)
    shown = " ".join(f"{_time(row.percentiles[p]):>7}" for p in PERCENTILES)
    left = f"{row.size:>12} {row.count:>12} {row.type:>9} {row.redop:>7} {row.root:>6}"
    return f"  {left}  {halves[0]}  {halves[1]} {shown}"


def footer(rows: Sequence[Row]) -> str:
    """What comes after the rows: whether all was right, and the mean bandwidth."""
    wrong = sum(row.wrong or 0 for row in rows)
    average = mean(row.bus_bw for row in rows)
    verdict = "FAILED" if wrong else "OK"
    return (
        f"# {'Out of bounds values':<20} : {wrong} {verdict}\n"
        f"# {'Avg bus bandwidth':<20} : {average:g}\n#"
    )


def as_json(rows: Sequence[Row], config: dict[str, Any], env: Sequence[str]) -> dict[str, Any]:
    """All rows, with nccl-tests' keys; `pattern` and `percentiles` are added to each."""
    wrong = sum(row.wrong or 0 for row in rows)
    return {
        "config": config,
        "env": list(env),
        "results": [_result(row) for row in rows],
        "out_of_bounds": {"count": wrong, "okay": not wrong},
        "average_bus_bandwidth": {
            "bandwidth": mean(row.bus_bw for row in rows),
            "okay": "unchecked",
        },
    }


def _result(row: Row) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "time": row.time * 1e6,
        "alg_bw": row.alg_bw,
        "bus_bw": row.bus_bw,
        "nwrong": row.wrong,
    }
    return {
        "size": row.size,
        "count": row.count,
        "type": row.type,
        "redop": row.redop,
        "root": str(row.root),
        "out_of_place": None if row.in_place else numbers,
        "in_place": numbers if row.in_place else None,
        "actual_iterations": row.runs,
        "experiment_name": row.name,
        "pattern": row.name,
        "percentiles": {f"p{p}": t * 1e6 for p, t in row.percentiles.items()},
    }


def _time(seconds: float) -> str:
    micro = seconds * 1e6
    return f"{micro:.2f}" if micro < 1000 else f"{micro:.1f}" if micro < 1e5 else f"{micro:.0f}"
