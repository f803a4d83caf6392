"""Keeping a launcher interruptible while it waits, in native code, for other nodes."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsDest

if TYPE_CHECKING:
    from pathlib import Path

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOP = 0


class Meeting:
    """Ends the process on SIGINT or SIGTERM from `begin` to `end`, which the main thread calls.

    Torch's rendezvous may wait for many minutes, in which no Python handler runs. The thread that
    runs instead is gone again before ranks are forked.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._handlers: dict[int, Any] = {}
        self._read = self._write = -1
        self._thread = threading.Thread(target=self._listen, name="commlang-meeting", daemon=True)

    def begin(self) -> None:
        """Start listening; does nothing outside the main thread, which signals do not reach."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write)
        self._handlers = {signum: signal.signal(signum, _pass) for signum in _SIGNALS}
        self._thread.start()

    def end(self) -> None:
        """Stop listening and put the handlers back; a second call does nothing."""
        if not self._handlers:
            return
        signal.set_wakeup_fd(-1)
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)
        self._handlers = {}
        os.write(self._write, bytes([_STOP]))
        self._thread.join()
        os.close(self._read)
        os.close(self._write)

    def _listen(self) -> None:
        select.select([self._read], [], [])
        signum = os.read(self._read, 1)[0]
        if signum == _STOP:
            return
        try:
            shutil.rmtree(self._run_dir, ignore_errors=True)
            name = signal.Signals(signum).name
            sys.stderr.write(f"interrupted by {name} while waiting for the other nodes\n")
            sys.stderr.flush()
        finally:
            os._exit(128 + signum)


class LogsAfterMeeting(DefaultLogsSpecs):
    """Elastic's log files; asked for between rendezvous and start of ranks, it ends a meeting."""

    def __init__(self, log_dir: Path, meeting: Meeting) -> None:
        super().__init__(log_dir=str(log_dir))
        self._meeting = meeting

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Elastic's answer, once no thread of the meeting is left to be forked."""
        self._meeting.end()
        return super().reify(envs)


def _pass(signum: int, frame: object) -> None:
    """A handler that does nothing: the wake-up descriptor has already told the thread."""
