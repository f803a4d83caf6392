"""Starting local ranks through mpirun, and telling what became of them."""

from __future__ import annotations

import ctypes
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from commlang.errors import CommlangError, UsageError
from commlang.execute.diagnosis import Narrator
from commlang.execute.launch import Ending, board_in, last_lines, run_directory
from commlang.execute.mpi.found import find_mpirun
from commlang.execute.report import State
from commlang.execute.signals import Interrupted, signals_raised

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commlang.execute.options import LaunchOptions
    from commlang.execute.progress import Board

JOB_FILE = "job"
SAID_FILE = "said"
"""What rank 0 writes to standard error, apart from what mpirun has to say."""
_POLL_S = 0.02
# mpirun gives ranks so long to end on a signal, which they take note of; then it kills them.
_NOTICE_S = 3
_SHUTDOWN_S = 20.0
_LEAVING_S = 60.0
_SLOW_START_S = 120.0
_PR_SET_PDEATHSIG = 1

_ENDS = (
    (re.compile(r"rank (\d+) with PID \d+ on node \S+ exited on\s+signal (\d+)"), -1),
    (re.compile(r"Process name: \[\S+,(\d+)\]\s+Exit code:\s+(\d+)"), 1),
)
"""How Open MPI tells of a rank's end: by a signal (negative here), or with an exit code."""


def launch_mpi(
    entry: Callable[..., Any],
    args: tuple[Any, ...],
    options: LaunchOptions,
    *,
    narrator: Narrator | None = None,
    timeout: float = 60.0,
) -> list[Any]:
    """Run `entry(context, *args)` on ranks of this node that mpirun starts; the results, by rank.

    As `launch` does it, whose other arguments and errors are the same. `entry`, `args` and the
    results are pickled. Raises UsageError also where MPI is not installed, or for several nodes.
    """
    options = options.checked()
    if options.nodes > 1:
        raise UsageError(
            "commlang starts ranks of MPI on one node; on several, start it by mpirun or srun: "
            "`mpirun -n RANKS --hostfile HOSTS commlang run …`"
        )
    ranks, mpirun = options.nproc_per_node, find_mpirun()
    with signals_raised(), run_directory() as run_dir:
        board = board_in(run_dir, ranks)
        (run_dir / JOB_FILE).write_bytes(pickle.dumps((entry, args, timeout, os.getpid())))
        ending = Ending(board, run_dir, narrator or Narrator())
        job = _Job(mpirun, ranks, board, run_dir, max(timeout, _SLOW_START_S))
        try:
            code = job.wait()
        except Interrupted as caught:
            raise ending.interrupted(caught.signum) from None
        finally:
            job.close()
        results = [result_file(run_dir, rank) for rank in range(ranks)]
        if all(path.exists() for path in results):
            return [pickle.loads(path.read_bytes()) for path in results]
        if all(state is State.ABSENT for state in map(board.state, range(ranks))):
            said = last_lines(job.log) or f"it ended with exit code {code}"
            raise CommlangError(f"{mpirun} did not start the ranks: {said}")
        raise ending.failed(job.exit_codes(), look=True)


def result_file(run_dir: Path, rank: int) -> Path:
    """Where a rank leaves its pickled result."""
    return run_dir / f"result-{rank}"


class _Job:
    """mpirun and its ranks, from start to `close`, after which none is left."""

    def __init__(self, mpirun: str, ranks: int, board: Board, run_dir: Path, slow: float) -> None:
        self.log = run_dir / "mpirun"
        self._board, self._ranks = board, ranks
        self._latest_start = time.monotonic() + slow
        self._said = (run_dir / SAID_FILE).open("a+", errors="replace")
        command = [mpirun, "-n", str(ranks), sys.executable, "-P"]
        command += ["-m", "commlang.execute.mpi.child", str(run_dir)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stderr=log,
                env=_environment(run_dir),
                start_new_session=True,  # a terminal's Ctrl-C is ours to pass on
                preexec_fn=_end_with_parent,
            )

    def wait(self) -> int | None:
        """Until mpirun has ended, or has nothing left to wait for; returns its exit code."""
        leaving = 0.0
        while self._process.poll() is None:
            self._pass_on()
            states = [self._board.state(row) for row in range(self._ranks)]
            now = time.monotonic()
            if State.ABSENT in states and now > self._latest_start:
                break
            if State.ABSENT in states or State.RUNNING in states:
                leaving = now + _LEAVING_S
            elif now > leaving:
                break
            time.sleep(_POLL_S)
        return self._process.poll()

    def close(self) -> None:
        """End what still runs, and wait for it."""
        process = self._process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_SHUTDOWN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._board.kill_running()
        self._pass_on()
        self._said.close()

    def exit_codes(self) -> dict[int, int]:
        """What mpirun said of how ranks ended, by local rank; it need not say it of all."""
        text = " ".join(self.log.read_text("utf-8", errors="replace").split())
        # The local ranks of one node need not be in the order of the ranks.
        row = {rank: row for row, rank in enumerate(self._board.ranks)}
        return {
            row[int(rank)]: sign * int(code)
            for pattern, sign in _ENDS
            for rank, code in pattern.findall(text)
        }

    def _pass_on(self) -> None:
        if text := self._said.read():
            sys.stderr.write(text)
            sys.stderr.flush()


def _environment(run_dir: Path) -> dict[str, str]:
    """The ranks': modules from where this process has them, and mpirun less strict than it is.

    There may be more ranks than cores, as with any other backend, and containers have only root.
    What Open MPI keeps in files goes with the run's directory, even if ranks are killed.
    """
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(path or str(os.getcwd()) for path in sys.path)  # noqa: PTH109
    env.setdefault("OMP_NUM_THREADS", "1")
    env.setdefault("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
    env.setdefault("PRTE_MCA_hwloc_default_binding_policy", "none")
    env.setdefault("PRTE_MCA_odls_base_sigkill_timeout", str(_NOTICE_S))
    env.setdefault("PRTE_MCA_prte_tmpdir_base", str(run_dir))
    env.setdefault("OMPI_MCA_btl_sm_backing_directory", str(run_dir))
    if os.geteuid() == 0:
        env.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        env.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    return env


def _end_with_parent() -> None:
    """On Linux, end mpirun and so its ranks if this process is killed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
