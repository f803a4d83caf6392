"""Starting local ranks through torch's elastic_launch, and telling what became of them."""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import shutil
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from commlang.errors import CommlangError, UsageError
from commlang.execute.diagnosis import Narrator, explain, waiting
from commlang.execute.options import (
    TORCHRUN_PORT,
    LaunchOptions,
    choose_start_method,
    prefer_loopback,
)
from commlang.execute.progress import BOARD_FILE, Board
from commlang.execute.report import (
    NOTES_FILE,
    RankReport,
    RunFailed,
    RunInterrupted,
    State,
    first_line,
    read_reports,
)
from commlang.execute.shortage import oom_kills
from commlang.execute.signals import Interrupted, interrupted_by, signals_raised

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from torch.distributed.launcher.api import LaunchConfig

    from commlang.execute.meeting import Meeting

# Elastic looks at its ranks this often; a look costs under a millisecond.
_POLL_S = 0.05
# Ranks end on a signal within two seconds; one that does not is killed.
_SHUTDOWN_S = 4
# How long torch lets nodes wait for one another, unless --rdzv-conf timeout= says otherwise.
_MEETING_S = 600
# Bytes that the files of a run may come to, of many ranks too.
_ROOM = 32 << 20


def launch(
    entry: Callable[..., Any],
    args: tuple[Any, ...],
    options: LaunchOptions,
    *,
    narrator: Narrator | None = None,
    timeout: float = 60.0,
    cuda: bool = False,
    preload: tuple[str, ...] = (),
) -> list[Any]:
    """Run `entry(context, *args)` on new ranks of this node; the results, by local rank.

    `context` is a RankContext. With `spawn`, `entry`, `args` and the results are pickled. `timeout`
    is in seconds without progress; `cuda` must be true if the ranks may so much as look at CUDA.
    Modules to `preload` are imported once before a fork, and not by every rank after it.
    Only rank 0 of the run prints; what the others write is dropped, or shown if they crash.

    Raises UsageError for options that make no sense, RunFailed if a rank fails, dies or makes no
    progress, RunInterrupted after SIGINT and the like, and CommlangError if the nodes do not meet.
    No process or file is left in any case.
    """
    options = options.checked()
    method = choose_start_method(options.start_method, cuda=cuda, local=options.is_local)
    with signals_raised(), run_directory() as run_dir, _environment(options):
        # After the environment is set: no more than one OpenMP thread may exist before a fork.
        from torch.distributed import DistError
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.elastic.rendezvous import RendezvousError
        from torch.distributed.launcher.api import elastic_launch

        from commlang.execute import child
        from commlang.execute.meeting import Meeting
        from commlang.execute.reach import Unreachable

        if method == "fork":
            for module in preload:
                importlib.import_module(module)
            # What lives now stays: ranks that never look at it for garbage never copy its pages.
            gc.freeze()
        board = board_in(run_dir, options.nproc_per_node)
        job = child.Job(entry, args, run_dir, os.getpid(), timeout)
        meeting = Meeting(run_dir)
        run = elastic_launch(_config(options, method, run_dir, meeting), child.main)
        story = Ending(board, run_dir, narrator or Narrator())
        try:
            if not options.is_local:
                _find_others(options)
                meeting.begin()
            with _quiet_elastic():
                results = run(job)
        except ChildFailedError as error:
            codes = {f.local_rank: f.exitcode for f in error.failures.values()}
            raise story.failed(codes) from None
        except Interrupted as error:
            raise story.interrupted(error.signum) from None
        except (DistError, RendezvousError, OSError, Unreachable) as error:
            if options.is_local:
                raise
            raise _did_not_meet(options, error) from error
        finally:
            gc.unfreeze()
            meeting.end()
        return [results[rank] for rank in sorted(results)]


class Ending:
    """What became of the ranks of a failed run."""

    def __init__(self, board: Board, run_dir: Path, narrator: Narrator) -> None:
        self._board = board
        self._run_dir = run_dir
        self._narrator = narrator
        self._oom_kills = oom_kills()

    def failed(self, exit_codes: Mapping[int, int], *, look: bool = False) -> RunFailed:
        """The error for ranks that ended with something other than a result.

        `exit_codes` are by local rank. Where the launcher may not know all of them, `look` for
        processes that are gone without having said so.
        """
        reports = self._reports(exit_codes, look=look)
        text, causes = explain(reports, self._narrator)
        killed = any(r.exit_code == -signal.SIGKILL for r in reports if r.rank in causes)
        if killed and self._oom_kills != oom_kills():
            text += "\n  meanwhile the kernel has killed a process for want of memory: see `dmesg`"
        return RunFailed(text, reports, causes)

    def interrupted(self, signum: int) -> RunInterrupted:
        """The error for a signal to this process."""
        reports = self._reports({})
        lines = waiting(reports, self._narrator)
        text = "\n  ".join([interrupted_by(signum), *lines])
        return RunInterrupted(text, reports, signum)

    def _reports(self, exit_codes: Mapping[int, int], *, look: bool = False) -> list[RankReport]:
        # The processes are all gone by now, so that only exit codes and notes tell who went first.
        local = self._board.reports(look=look)
        reports = {r.rank: self._with_end(r, row, exit_codes) for row, r in enumerate(local)}
        # A rank that fails may see others gone whom the launcher has ended for its sake.
        blamed = any(r.state is State.FAILED and not r.consequence for r in reports.values())
        for note in read_reports(self._run_dir / NOTES_FILE):
            ended_for_it = blamed and note.state is State.VANISHED
            known = note.rank in reports and reports[note.rank].exit_code is not None
            if not known and not ended_for_it:
                reports[note.rank] = note
        return [reports[rank] for rank in sorted(reports)]

    def _with_end(self, report: RankReport, row: int, exit_codes: Mapping[int, int]) -> RankReport:
        if row not in exit_codes:
            return report
        died = report.state in (State.ABSENT, State.RUNNING, State.VANISHED)
        stderr = last_lines(self._run_dir / f"stderr-{row}") if died else ""
        return replace(report, exit_code=exit_codes[row], stderr=stderr)


def _config(
    options: LaunchOptions, method: Literal["fork", "spawn"], run_dir: Path, meeting: Meeting
) -> LaunchConfig:
    from torch.distributed.launcher.api import LaunchConfig

    from commlang.execute import rendezvous
    from commlang.execute.meeting import LogsAfterMeeting

    backend, endpoint, configs = options.rendezvous()
    rendezvous.register()
    if options.is_local:
        backend, endpoint = rendezvous.LOCAL, "127.0.0.1"
    elif backend == "static":
        backend = rendezvous.STATIC
    return LaunchConfig(
        min_nodes=options.nodes,
        max_nodes=options.nodes,
        nproc_per_node=options.nproc_per_node,
        run_id=options.rdzv_id,
        rdzv_backend=backend,
        rdzv_endpoint=endpoint,
        rdzv_configs=dict(configs),
        max_restarts=0,
        monitor_interval=_POLL_S,
        start_method=method,
        local_addr=options.local_addr or ("127.0.0.1" if options.is_local else None),
        logs_specs=LogsAfterMeeting(run_dir, meeting),
        shutdown_timeout=_SHUTDOWN_S,
        signals_to_handle="",  # ours are set already
    )


def _find_others(options: LaunchOptions) -> None:
    """Wait until there is somebody to meet; raises Unreachable if there is not within the time."""
    from commlang.execute.reach import connect, resolve

    backend, endpoint, configs = options.rendezvous()
    host, _, port = endpoint.rpartition(":")
    number = int(port) if port.isdecimal() else TORCHRUN_PORT
    seconds = str(configs.get("timeout", ""))
    deadline = time.monotonic() + (float(seconds) if seconds.isdecimal() else _MEETING_S)
    if backend == "static" and options.node_rank > 0:
        connect(host, number, deadline)
    else:
        resolve(host or port, number, deadline)


def _did_not_meet(options: LaunchOptions, error: Exception) -> CommlangError:
    from commlang.execute.reach import is_taken

    _, endpoint, _ = options.rendezvous()
    node = f"node {options.node_rank} of {options.nodes}"
    if is_taken(error):
        return CommlangError(
            f"{node} cannot serve the others at {endpoint}: another process has taken the port. "
            "Choose another --master-port, the same on every node."
        )
    return CommlangError(
        f"{node} did not meet the others at {endpoint} ({first_line(error).rstrip('.')}). Start "
        "commlang on every node with the same --nnodes, --master-addr and --master-port, and node "
        "ranks from 0 up."
    )


def last_lines(path: Path) -> str:
    """The last lines that a rank's native code wrote, without torch's warnings."""
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join([line for line in lines if line and not line.startswith("[W")][-6:])


@contextlib.contextmanager
def run_directory() -> Generator[Path]:
    """A private directory for everything that the run keeps in files, torch's included."""
    # In memory where possible: writing back a mapped file to a disk stalls whoever writes to it.
    shm = Path("/dev/shm")
    where = str(shm) if "TMPDIR" not in os.environ and _has_room(shm) else None
    path = Path(tempfile.mkdtemp(prefix="commlang-", dir=where))
    before, tempfile.tempdir = tempfile.tempdir, str(path)
    try:
        yield path
    finally:
        tempfile.tempdir = before
        shutil.rmtree(path, ignore_errors=True)


def board_in(run_dir: Path, ranks: int) -> Board:
    """The board of a run; raises UsageError if its directory has no room for it."""
    try:
        return Board.create(run_dir / BOARD_FILE, range(ranks))
    except OSError as error:
        raise UsageError(
            f"cannot keep the files of the run in {run_dir.parent}: {error.strerror}. Make room "
            "there, or set TMPDIR to another folder."
        ) from error


def _has_room(folder: Path) -> bool:
    usable = folder.is_dir() and os.access(folder, os.W_OK)
    return usable and shutil.disk_usage(folder).free >= _ROOM


@contextlib.contextmanager
def _environment(options: LaunchOptions) -> Generator[None]:
    """The variables that ranks inherit, and that torch reads here when it is first imported."""
    names = ("OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "TORCHELASTIC_SIGNALS_TO_HANDLE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if options.is_local:
        prefer_loopback()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _quiet_elastic() -> Generator[None]:
    """Keep elastic from logging what is told as an error of ours."""
    prefixes = ("torch.distributed.elastic", "torch.distributed.launcher", "torch.multiprocessing")
    names = [name for name in logging.root.manager.loggerDict if name.startswith(prefixes)]
    loud = [logger for logger in map(logging.getLogger, names) if not logger.disabled]
    for logger in loud:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loud:
            logger.disabled = False
