"""Commands as processes of their own, in a session of their own, and what is left of them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tests.warm import Warm

ROOT = Path(__file__).parents[2]
COMMAND = ("-m", "commlang", "run")
DEADLINE_S = 100
Process: TypeAlias = "subprocess.Popen[str] | Warm"


@dataclass
class Runs:
    """Starts commands in a folder, and knows which processes and files are left of them."""

    folder: Path
    temporary: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    sessions: set[int] = field(default_factory=set[int])

    def environment(self) -> dict[str, str]:
        marks = {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary), "COMMLANG_MARK": self.mark}
        return os.environ | marks

    def warm(self, *argv: str, stdin: str = "", **variables: str) -> Warm:
        """`commlang run ARGV`, with torch already loaded."""
        process = Warm(["run", *argv], self.folder, self.environment() | variables, stdin=stdin)
        self.sessions.add(process.pid)
        return process

    def start(self, *argv: str, **variables: str) -> subprocess.Popen[str]:
        """`python ARGV`."""
        return subprocess.Popen(
            [sys.executable, *argv],
            cwd=self.folder,
            env=self.environment() | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,  # so that a Ctrl-C can be played to all of it
        )

    def processes(self) -> list[int]:
        return living(self.mark, self.sessions)

    def assert_nothing_left(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        # torchrun keeps a directory of logs, which is its own business.
        files = [p.name for p in self.temporary.iterdir() if "torchelastic_" not in p.name]
        assert (self.processes(), files) == ([], [])


def living(mark: str, sessions: set[int]) -> list[int]:
    """The processes that were started with a mark in their environment, or are of a session."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                ours = mark.encode() in (entry / "environ").read_bytes()
                if state not in "ZX" and (ours or int(session) in sessions):
                    found.append(int(entry.name))
    return found


def finish(*processes: Process) -> list[tuple[int, str, str]]:
    ends: list[tuple[int, str, str]] = []
    for process in processes:
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode is not None
        ends.append((process.returncode, out, err))
    return ends
