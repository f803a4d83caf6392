"""The runs of `commlang compare --measure`: `commlang run` as a process, and its JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from commlang.report.compare import Measured
from commlang.report.text import bytes_text
from commlang.verify.values import format_value

if TYPE_CHECKING:
    from commlang.program import Program

ITERATIONS = 5
_COPIES = 3
"""Tensors of a run are there as they began, to start each iteration alike, and as expected."""


def measured_run(file: str, program: Program, need: float, max_events: int) -> Measured:
    """Run a checked pattern on local ranks, as it is written; `need` is what its tensors take.

    What would not fit into this machine's free memory is not run, which is no failure.
    """
    if file == "-":
        reason = "standard input is read already; put the pattern into a file to measure it"
        return Measured(None, reason, 2)
    free = _free_memory()
    if free is not None and _COPIES * need > free:
        told = f"{bytes_text(round(_COPIES * need))}, and {bytes_text(free)} are free"
        return Measured(None, f"a run needs about {told}")
    done = subprocess.run(
        _command(file, program, max_events),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return Measured(None, done.stderr.strip() or "the run failed", done.returncode)
    report = json.loads(done.stdout)
    return Measured(report["totals"]["median"], where=f"{report['backend']}, {report['device']}")


def _command(file: str, program: Program, max_events: int) -> list[str]:
    values = [f"--set={name}={format_value(value)}" for name, value in program.values.items()]
    options = ["--json", "--schedule=program", f"--iters={ITERATIONS}", "--allow-hazards"]
    sizes = [f"--nproc-per-node={program.world}", f"--max-events={max_events}"]
    return [sys.executable, "-m", "commlang", "run", file, *options, *sizes, *values]


def _free_memory() -> int | None:
    """Bytes that Linux says can be had; None elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = next((line.split() for line in lines if line.startswith("MemAvailable:")), None)
    return int(found[1]) * 1024 if found else None
