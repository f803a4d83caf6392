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

ROOT = Path(__file__).parents[2]
COMMAND = ("-m", "commlang", "run")
DEADLINE_S = 100


@dataclass
class Runs:
    """Starts commands in a folder, and knows which processes and files are left of them."""

    folder: Path
    temporary: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self, *argv: str, **variables: str) -> subprocess.Popen[str]:
        marks = {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary), "COMMLANG_MARK": self.mark}
        return subprocess.Popen(
            [sys.executable, *argv],
            cwd=self.folder,
            env=os.environ | marks | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,  # so that a Ctrl-C can be played to all of it
        )

    def processes(self) -> list[int]:
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                mine = self.mark.encode() in (entry / "environ").read_bytes()
                if entry.name.isdecimal() and mine:
                    found.append(int(entry.name))
        return found

    def assert_nothing_left(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        # torchrun keeps a directory of logs, which is its own business.
        files = [p.name for p in self.temporary.iterdir() if "torchelastic_" not in p.name]
        assert (self.processes(), files) == ([], [])


def finish(*processes: subprocess.Popen[str]) -> list[tuple[int, str, str]]:
    ends: list[tuple[int, str, str]] = []
    for process in processes:
        out, err = process.communicate(timeout=DEADLINE_S)
        ends.append((process.returncode, out, err))
    return ends
