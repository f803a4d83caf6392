"""What is known of a rank after a run that failed, and the errors that carry it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import traceback
from dataclasses import asdict
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from commlang.errors import CommlangError
from commlang.execute.shortage import lacks_memory, shortage
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# How gloo, NCCL and the stores say that the fault is at the other end of a connection.
_LOST_PEER = re.compile(
    r"closed by peer|reset by peer|broken pipe|socket closed|connection refused|pair closure"
    r"|remote process exited|ncclRemoteError|failed to (?:recv|send)|connection was closed"
    r"|could not connect|connectFullMesh failed",
    re.IGNORECASE,
)

# In a run's directory: what its ranks know of others, for their launcher.
NOTES_FILE = "notes.json"


class State(IntEnum):
    """How far a rank's process is."""

    ABSENT = 0
    RUNNING = 1
    DONE = 2
    FAILED = 3
    TIMED_OUT = 4
    STOPPED = 5
    VANISHED = 6


# The rank ended before its work did, and could say so.
ENDED_BADLY = (State.FAILED, State.TIMED_OUT, State.STOPPED)


@record
class RankReport:
    """One rank at the end of a failed run.

    `position` counts executed steps (-1 before the first, -2 after the last), `idle_s` is the time
    since it last changed. `exit_code` is the process's, negative for a signal, None if unknown.
    `consequence` marks an error that only says that a peer went away. `known_code` is the exit code
    that a CommlangError asked for. `suspended` marks a process that was seen stopped by a signal.
    """

    rank: int
    position: int
    state: State
    idle_s: float = 0.0
    ended_ns: int = 0
    message: str = ""
    traceback: str = ""
    consequence: bool = False
    suspended: bool = False
    known_code: int = 1
    exit_code: int | None = None
    stderr: str = ""


class RunFailed(CommlangError):
    """A run ended early; `reports` has what is known of each rank, `causes` the ranks at fault."""

    def __init__(self, text: str, reports: Sequence[RankReport], causes: Sequence[int]) -> None:
        super().__init__(text)
        self.reports = tuple(reports)
        self.causes = tuple(causes)
        codes = {r.known_code for r in self.reports if r.rank in self.causes}
        self.exit_code = max(codes, default=1)


class RunInterrupted(RunFailed):
    """A run was ended by a signal to its launcher; exits as a shell would say it, 128 + signal."""

    def __init__(self, text: str, reports: Sequence[RankReport], signum: int) -> None:
        super().__init__(text, reports, ())
        self.exit_code = 128 + signum


def failure_fields(error: BaseException) -> dict[str, Any]:
    """The fields of a RankReport that an exception fills."""
    if isinstance(error, CommlangError):
        return {"message": str(error), "known_code": error.exit_code}
    if isinstance(error, SystemExit):
        return {"message": f"left before its last statement by sys.exit({error.code!r})"}
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if lacks_memory(error):
        text = shortage(error)
    return {
        "message": text,
        "traceback": "".join(traceback.format_exception(error)),
        "consequence": isinstance(error, (RuntimeError, OSError)) and bool(_LOST_PEER.search(text)),
    }


def first_line(error: BaseException) -> str:
    """What an error says, less the C++ file it was said in and the lines after the first."""
    said = str(error).split("\n", 1)[0]
    if said.startswith("[") and "] " in said:
        said = said.split("] ", 1)[1]
    return said or type(error).__name__


def cut(text: str, room: int) -> str:
    """`text` with its middle left out where it is longer than `room` characters."""
    half = (room - 5) // 2
    return text if len(text) <= room else f"{text[:half]} ... {text[-half:]}"


def to_json(report: RankReport) -> str:
    """`report` as text, for a store or a file."""
    return json.dumps(asdict(report))


def from_json(text: str | bytes) -> RankReport:
    """What `to_json` wrote."""
    fields: dict[str, Any] = json.loads(text)
    fields["state"] = State(fields["state"])
    return RankReport(**fields)


def write_reports(path: Path, reports: Sequence[RankReport]) -> None:
    """Write a file of reports, which others see whole or not at all."""
    whole = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        whole.write_text("\n".join(map(to_json, reports)), encoding="utf-8")
        whole.replace(path)


def read_reports(path: Path) -> list[RankReport]:
    """The reports in a file of `write_reports`; none if there is no such file."""
    if not path.exists():
        return []
    return [from_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
