"""Processes of commlang that are forked from one that has torch loaded, which most tests can share.

To load torch takes two seconds of a CPU, to fork 10 ms. Some tests of each kind start `python -m
commlang` all the same, and so do those in which it matters how a process starts.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

# One server imports torch once; each process is forked from it, before it has any thread.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "torch.distributed.launcher.api",
        "networkx",
        "commlang.cli.group",
        "commlang.cli.run",
        "commlang.contracts.model",
        "commlang.execute.child",
        "commlang.execute.executor",
        "commlang.execute.meeting",
        "commlang.execute.session",
        "commlang.plan",
        "commlang.report.run",
        "commlang.verify.refusal",
    ]
)


class Warm:
    """A command in a session of its own; has what tests need of `subprocess.Popen`.

    It calls `main(argv)` of a module, the command line unless another is named.
    """

    def __init__(
        self,
        argv: Sequence[str],
        folder: Path,
        environment: dict[str, str],
        *,
        stdin: str = "",
        module: str = "commlang.cli",
    ) -> None:
        self.args = list(argv)
        inputs, outputs, errors = (CONTEXT.Pipe(duplex=False) for _ in range(3))
        given = (module, self.args, str(folder), environment, inputs[0], outputs[1], errors[1])
        self._process: Any = CONTEXT.Process(target=_run, args=given)
        self._process.start()
        for end in (inputs[0], outputs[1], errors[1]):
            end.close()
        with contextlib.suppress(BrokenPipeError):
            os.write(inputs[1].fileno(), stdin.encode())
        inputs[1].close()
        self._told: list[str] = ["", ""]
        self._readers = [
            threading.Thread(target=self._read, args=(number, end[0]), daemon=True)
            for number, end in enumerate((outputs, errors))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, number: int, end: Connection) -> None:
        with open(os.dup(end.fileno()), encoding="utf-8") as stream:  # noqa: PTH123
            for line in stream:
                self._told[number] += line
        end.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, signum: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # over, and waited for by the server
            os.kill(self.pid, signum)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait_for(self, text: str, timeout: float) -> None:
        """Until it has printed a text; it must not end without."""
        deadline = time.monotonic() + timeout
        while text not in self._told[0]:
            assert self.returncode is None, self._told
            assert time.monotonic() < deadline, self._told
            time.sleep(0.02)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What was printed, once the process has ended and nobody holds its ends of the pipes."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        for reader in self._readers:
            reader.join(timeout)
            assert not reader.is_alive(), "a process of the run still holds its output"
        return self._told[0], self._told[1]


def _run(
    module: str,
    argv: list[str],
    folder: str,
    environment: dict[str, str],
    stdin: Connection,
    stdout: Connection,
    stderr: Connection,
) -> None:
    """Become the process: what `python -m MODULE` does once torch is there."""
    os.setsid()
    for number, end in enumerate((stdin, stdout, stderr)):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ |= environment
    sys.argv = ["commlang", *argv]
    sys.path.insert(0, "")

    code = import_module(module).main(argv)
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)
