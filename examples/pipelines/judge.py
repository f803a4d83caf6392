"""Judge pipeline schedules: the verdicts of commlang beside that of torch's own simulator.

    python examples/pipelines/judge.py FILE.csv...

`gloo` and `nccl` say whether every rank gets to the end of the step, the latter for communicators
made at once (`device_id` is given) or at first use; `may hang` is a warning. `data` says whether
every stage is proven to get what is for it.
"""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.distributed.pipelining import schedules

from commlang.convert import pattern_from_schedule, read_schedule
from commlang.convert.placement import place_stages
from commlang.diagnostics import Severity
from commlang.source import Source
from commlang.transports import Backend, NcclInit, Target
from commlang.verify import Options, lint_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.diagnostics import Diagnostic

TARGETS = {
    "gloo": Target(Backend.GLOO),
    "nccl, eager": Target(Backend.NCCL, NcclInit.EAGER),
    "nccl, lazy": Target(Backend.NCCL, NcclInit.LAZY),
}
CONTRACT, UNDECIDED = {"CL240"}, {"CL241", "CL242"}
HANGS = ("CL201", "CL202", "CL203", "CL25")
COLUMNS = ("schedule", "torch's simulator", *TARGETS, "data")


def judge(path: str) -> dict[str, str]:
    """The verdicts on a file, by column."""
    schedule = read_schedule(path)
    at = place_stages(schedule)
    source = Source(pattern_from_schedule(schedule).text, f"{Path(path).stem}.cl")
    row = {"schedule": Path(path).stem, "torch's simulator": _simulated(path, at)}
    codes: set[str] = set()
    for name, target in TARGETS.items():
        findings = lint_source(source, options=Options(target=target)).findings
        codes |= {finding.code for finding in findings}
        row[name] = _verdict([finding for finding in findings if finding.code.startswith(HANGS)])
    wrong, undecided = CONTRACT & codes, UNDECIDED & codes
    return row | {"data": "swapped" if wrong else "unproven" if undecided else "right"}


def _verdict(hangs: list[Diagnostic]) -> str:
    if any(finding.severity is Severity.ERROR for finding in hangs):
        return "hangs"
    return "may hang" if hangs else "ends"


def _simulated(path: str, at: list[int]) -> str:
    """What `_simulate_comms_compute` says; it knows no actions on weights and none made of two."""
    with Path(path).open(newline="") as stream:
        rows: Any = {
            rank: [atom for cell in row for atom in _atoms(schedules._Action.from_str(cell))]
            for rank, row in enumerate(csv.reader(stream))
        }
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            schedules._simulate_comms_compute(rows, at.__getitem__, len(at))
    except (ValueError, IndexError):  # the second from printing what it refuses
        return "refuses"
    return "accepts"


def _atoms(action: Any) -> Iterator[Any]:
    for atom in action.sub_actions or (action,):
        if atom.computation_type not in (
            schedules.UNSHARD,
            schedules.RESHARD,
            schedules.REDUCE_GRAD,
        ):
            yield atom


def main(paths: list[str]) -> None:
    rows = [dict(zip(COLUMNS, COLUMNS, strict=True)), *map(judge, paths)]
    widths = [max(len(row[column]) for row in rows) for column in COLUMNS]
    for row in rows:
        cells = (row[column].ljust(width) for column, width in zip(COLUMNS, widths, strict=True))
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    main(sys.argv[1:])
