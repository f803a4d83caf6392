"""Where each rank of a node stands, in memory that all of its processes share.

A rank owns one row of the board: eight int64 words, then text. Words are read and written without
a lock: each has one writer, and an aligned word is never seen half written.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import time
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commlang.execute.report import RankReport, State, cut

if TYPE_CHECKING:
    from collections.abc import Sequence

# Positions that are not those of a statement.
NOT_STARTED = -1
DONE = -2
JOINING = -3
JOINED = -4
MEETING = -5


class _Word(IntEnum):
    POSITION = 0
    STATE = 1
    PID = 2
    CHANGED = 3  # monotonic ns, by the rank's own watchdog
    ENDED = 4  # wall-clock ns, so that nodes can be compared
    TEXT = 5  # bytes of text
    RANK = 6
    SUSPENDED = 7  # set by whoever sees it, since the rank itself cannot


_WORDS = 8
_ROW = 32768
_TEXT_ROOM = _ROW - _WORDS * 8


BOARD_FILE = "board"
"""The board's name in the directory of a run."""


class Board:
    """The rows of the ranks of one node, one for each local rank."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._bytes = memoryview(memory)
        self._words = self._bytes.cast("q")
        self._size = len(memory) // _ROW

    @classmethod
    def private(cls, rank: int) -> Board:
        """A board of this process alone, for a rank that shares none yet."""
        return cls(mmap.mmap(-1, _ROW))._cleared([rank])

    @classmethod
    def create(cls, path: Path, ranks: Sequence[int]) -> Board:
        """A new board in a file at `path` for `ranks` (global), none of which has started.

        Raises OSError if there is no room for it.
        """
        with path.open("x+b") as file:
            # Whoever writes to a mapped hole of a file for which the disk has no room is killed.
            _allocate(file.fileno(), _ROW * len(ranks))
            return cls(mmap.mmap(file.fileno(), 0))._cleared(ranks)

    @classmethod
    def open(cls, path: Path) -> Board:
        """The board that another process created at `path`."""
        with path.open("r+b") as file:
            return cls(mmap.mmap(file.fileno(), 0))

    @property
    def ranks(self) -> list[int]:
        """The global rank of each row."""
        return [self.rank(row) for row in range(self._size)]

    def rank(self, row: int) -> int:
        """The global rank of one row."""
        return self._get(row, _Word.RANK)

    def cell(self, row: int) -> memoryview:
        """The position of one rank, as `cell[0]`: writing it is one store, some 30 ns."""
        start = row * _ROW
        return self._bytes[start : start + 8].cast("q")

    def start(self, row: int, rank: int) -> None:
        """Say that this process is the rank of `row`."""
        self._set(row, _Word.RANK, rank)
        self._set(row, _Word.PID, os.getpid())
        self.touch(row)
        self._set(row, _Word.STATE, State.RUNNING)

    def touch(self, row: int) -> None:
        """Say that the rank was seen to move."""
        self._set(row, _Word.CHANGED, time.monotonic_ns())

    def end(self, row: int, state: State, failure: dict[str, Any] | None = None) -> None:
        """Say how the rank ended; `failure` holds fields of its RankReport."""
        # Everything else first: whoever sees the state change may read all of it.
        self._write_text(row, failure or {})
        self._set(row, _Word.ENDED, time.time_ns())
        self._set(row, _Word.STATE, state)

    def state(self, row: int) -> State:
        """What the rank last said of itself."""
        return State(self._get(row, _Word.STATE))

    def vanished(self, row: int) -> bool:
        """Whether the rank's process is gone although it has not said that it ended."""
        pid = self._get(row, _Word.PID)
        running = self.state(row) is State.RUNNING and pid != os.getpid()
        # Asked again, as it may have ended between the two questions.
        return running and not alive(pid) and self.state(row) is State.RUNNING

    def note_suspended(self) -> list[int]:
        """Mark the ranks whose processes are stopped, as by SIGSTOP; returns those processes."""
        found: list[int] = []
        for row in range(self._size):
            pid = self._get(row, _Word.PID)
            if self.state(row) is State.RUNNING and suspended(pid):
                self._set(row, _Word.SUSPENDED, 1)
                found.append(pid)
        return found

    def kill_running(self) -> None:
        """Kill the processes of ranks that have not said that they ended, as a launcher may."""
        for row in range(self._size):
            pid = self._get(row, _Word.PID)
            if self.state(row) is State.RUNNING and alive(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def report(self, row: int, *, look: bool = True) -> RankReport:
        """All that is known here of one rank; with `look`, also whether its process is gone."""
        changed = self._get(row, _Word.CHANGED)
        return RankReport(
            rank=self.rank(row),
            position=self._get(row, _Word.POSITION),
            state=State.VANISHED if look and self.vanished(row) else self.state(row),
            idle_s=(time.monotonic_ns() - changed) / 1e9 if changed else 0.0,
            ended_ns=self._get(row, _Word.ENDED),
            suspended=bool(self._get(row, _Word.SUSPENDED)),
            **self._read_text(row),
        )

    def reports(self, *, look: bool = True) -> list[RankReport]:
        """`report` of every row."""
        return [self.report(row, look=look) for row in range(self._size)]

    def _get(self, row: int, word: _Word) -> int:
        return self._words[row * (_ROW // 8) + word]

    def _set(self, row: int, word: _Word, value: int) -> None:
        self._words[row * (_ROW // 8) + word] = value

    def _write_text(self, row: int, failure: dict[str, Any]) -> None:
        # Two long texts have to fit, and JSON may write one character as six bytes.
        room = _TEXT_ROOM // 13
        short = {k: cut(v, room) if isinstance(v, str) else v for k, v in failure.items()}
        data = json.dumps(short).encode()
        start = row * _ROW + _WORDS * 8
        self._bytes[start : start + len(data)] = data
        self._set(row, _Word.TEXT, len(data))

    def _read_text(self, row: int) -> dict[str, Any]:
        start = row * _ROW + _WORDS * 8
        data = bytes(self._bytes[start : start + self._get(row, _Word.TEXT)])
        return json.loads(data) if data else {}

    def _cleared(self, ranks: Sequence[int]) -> Board:
        for row, rank in enumerate(ranks):
            self._set(row, _Word.RANK, rank)
            self._set(row, _Word.POSITION, NOT_STARTED)
        return self


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:  # macOS
        os.write(descriptor, bytes(size))


def alive(pid: int) -> bool:
    """Whether the process still runs; one that is dead but not yet collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    state = _process_state(pid)
    return state not in ("Z", "X") if state else not Path("/proc/self/stat").exists()


def suspended(pid: int) -> bool:
    """Whether the process is stopped by a signal or a debugger; False where /proc does not say."""
    return _process_state(pid) in ("T", "t")


def _process_state(pid: int) -> str:
    """The letter that Linux has for it, empty if there is none to be had."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]
