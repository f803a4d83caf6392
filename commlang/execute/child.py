"""The first thing that a launched process runs."""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from commlang.execute.environment import detect
from commlang.execute.rank import run_launched
from commlang.execute.watch import Launched
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@record
class Job:
    """What a launcher hands to its ranks."""

    entry: Callable[..., Any]
    args: tuple[Any, ...]
    run_dir: Path
    launcher: int
    timeout: float
    blind: bool = False


def main(job: Job) -> Any:
    """Be a rank: run the job's entry and return its result."""
    info = detect(os.environ)
    assert info is not None, "elastic_launch sets RANK and the rest"
    tempfile.tempdir = None
    _divert_output(job.run_dir / f"stderr-{info.local_rank}", speaks=info.rank == 0)
    launched = Launched(job.run_dir, job.launcher, job.blind)
    return run_launched(job.entry, job.args, info, launched, job.timeout)


def _divert_output(path: Path, *, speaks: bool) -> None:
    """Send what native code writes to a file; only a rank that `speaks` is heard.

    When a process is aborted, torch and Python's fault handler write pages to descriptor 2; the
    launcher quotes the few lines that matter.
    """
    faulthandler.disable()
    sys.stdout.flush()
    sys.stderr.flush()
    if speaks:
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    else:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.close(silence)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.close(log)
