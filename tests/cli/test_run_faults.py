"""What can befall the ranks of `commlang run` and the machine that they run on, done for real."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.processes import COMMAND, DEADLINE_S, ROOT, Process, Runs, finish
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

SUM = """\
extern step(x: update float32[n])

pattern main(x: float32[n], n = 8):
    step(x)
    all_reduce(x)
"""
PASS = """\
extern step(x: update float32[n])

pattern main(x: float32[n], n = 1Mi):
    if rank == 1:
        send(x, dst=0)
    if rank == 0:
        step(x)
        recv(x, src=1)
"""
FUNCTIONS = """\
import os, pathlib, signal, threading, time
import torch
import torch.distributed as dist


def on(rank, act):
    return lambda x: act() if dist.get_rank() == rank else None


def to_self(signum, after_s=0.0):
    if after_s:
        threading.Timer(after_s, os.kill, (os.getpid(), signum)).start()
    else:
        os.kill(os.getpid(), signum)


def later(signum):
    # Rank 1 is in its all_reduce by then, for which rank 0 has not come.
    def step(x):
        if dist.get_rank() == 1:
            to_self(signum, 1.0)
        if dist.get_rank() == 0:
            time.sleep(2 if signum == signal.SIGSTOP else 300)
    return step


def rest():
    pathlib.Path("asleep").touch()
    time.sleep(2)


def wait():
    pathlib.Path("asleep").touch()
    time.sleep(300)


stop = on(1, lambda: to_self(signal.SIGSTOP))
kill_in_collective, stop_in_collective = later(signal.SIGKILL), later(signal.SIGSTOP)
kill_in_send = on(0, lambda: (os.kill(os.getppid(), 0), kill_sender(), time.sleep(300)))
slow = on(1, lambda: time.sleep(4))
nap, stall = on(1, rest), on(1, wait)
ask = on(1, lambda: torch.empty(1 << 46))


def kill_sender():
    time.sleep(1)
    sender, = (int(p.name[4:]) for p in pathlib.Path().glob("pid-*") if p.read_text() == "1")
    os.kill(sender, signal.SIGKILL)
"""
# What befalls a rank between the making of its group and its first statement.
AT_IMPORT = """\
import os, torch.distributed as dist
step = print
if dist.get_rank() == 1:
    os.kill(os.getpid(), 9)
"""
PIDS = """\
import os, pathlib, torch.distributed as dist
pathlib.Path(f"pid-{os.getpid()}").write_text(str(dist.get_rank()))
"""
STEP, REDUCE = "`step(x)` (sum.cl:4:5)", "`all_reduce(x)` (sum.cl:5:5)"
slow = pytest.mark.slow


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path / "work", tmp_path / "temporary")
    for folder in (runs.folder, runs.temporary):
        folder.mkdir()
    files = {"sum.cl": SUM, "pass.cl": PASS, "functions.py": FUNCTIONS}
    files |= {"at_import.py": AT_IMPORT, "pids.py": PIDS + FUNCTIONS}
    for name, text in files.items():
        (runs.folder / name).write_text(text)
    yield runs
    for pid in runs.processes():
        os.kill(pid, signal.SIGKILL)


def run(runs: Runs, *argv: str, **variables: str) -> tuple[int, list[str]]:
    """The exit code, and the lines on standard error."""
    ((code, _, err),) = finish(runs.warm(*argv, **variables))
    runs.assert_nothing_left()
    return code, err.splitlines()


@pytest.mark.parametrize(
    ("file", "extern", "message"),
    [
        (
            "sum.cl",
            "functions:stop",
            rf"rank 1 made no progress for \d+ s at {re.escape(STEP)}, being stopped \(as by SIG.*",
        ),
        pytest.param(
            "sum.cl",
            "functions:stop_in_collective",
            rf"rank 1 made no progress for \d+ s at {re.escape(REDUCE)}, after {re.escape(STEP)}, "
            "being stopped .*",
            marks=slow,
        ),
        (
            "sum.cl",
            "functions:kill_in_collective",
            rf"rank 1 was killed by SIGKILL at {re.escape(REDUCE)}",
        ),
        pytest.param(
            "pass.cl",
            "pids:kill_in_send",
            r"rank 1 was killed by SIGKILL at `send\(x, dst=0\)` \(pass.cl:5:9\)",
            marks=slow,
        ),
        pytest.param(
            "sum.cl",
            "at_import:step",
            "rank 1 was killed by SIGKILL at the making of its data",
            marks=slow,
        ),
        pytest.param(
            "sum.cl",
            "functions:ask",
            rf"rank 1 failed at {re.escape(STEP)}: out of memory: 281,474,976,710,656 bytes "
            r"\(256 TiB\) were asked for",
            marks=slow,
        ),
    ],
)
def test_the_rank_at_fault_is_named(runs: Runs, file: str, extern: str, message: str) -> None:
    argv = (file, "--nproc-per-node=3", "--timeout=3", f"--extern=step={extern}")
    code, (first, *others) = run(runs, *argv)
    assert code == 1
    assert re.fullmatch(f"error: {message}", first), first
    assert all(line.startswith(("  rank ", "  ranks ")) for line in others)


@slow
def test_a_tensor_that_there_is_no_memory_for_is_named(runs: Runs) -> None:
    code, (first, *_) = run(runs, "sum.cl", "--nproc-per-node=2", "--set=n=64Ti")
    assert code == 1
    said = "out of memory for tensor `x`, which takes 281,474,976,710,656 bytes (256 TiB)"
    assert re.match(r"error: (rank \d|ranks 0, 1) failed at the making of its data: ", first)
    assert first.endswith(said)


@slow
def test_a_rank_that_is_slow_is_no_failure(runs: Runs) -> None:
    argv = ("sum.cl", "--nproc-per-node=3", "--timeout=30", "--iters=0")
    assert run(runs, *argv, "--extern=step=functions:slow") == (0, [])


@slow
def test_a_run_that_is_stopped_and_continued_as_a_whole_goes_on(runs: Runs) -> None:
    process = asleep(runs, "nap", "--timeout=8", "--iters=0")
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(12)
    os.killpg(process.pid, signal.SIGCONT)
    ((code, _, err),) = finish(process)
    assert (code, err) == (0, "")


def asleep(runs: Runs, function: str = "stall", *argv: str) -> Process:
    """A run whose rank 1 sleeps in its first statement."""
    argv = ("sum.cl", "--nproc-per-node=3", f"--extern=step=functions:{function}", *argv)
    process = runs.warm(*argv)
    deadline = time.monotonic() + DEADLINE_S
    while not (runs.folder / "asleep").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


@pytest.mark.parametrize(
    ("signum", "times", "whole_group"),
    [
        (signal.SIGTERM, 4, False),
        pytest.param(signal.SIGINT, 8, True, marks=slow),
        pytest.param(signal.SIGINT, 2, False, marks=slow),
        pytest.param(signal.SIGTERM, 1, True, marks=slow),
        pytest.param(signal.SIGHUP, 1, True, marks=slow),
    ],
)
def test_a_signal_given_more_than_once_ends_the_run_as_one(
    runs: Runs, signum: signal.Signals, times: int, whole_group: bool
) -> None:
    process = asleep(runs)
    for _ in range(times):
        with contextlib.suppress(ProcessLookupError):  # it may be over by now
            (os.killpg if whole_group else os.kill)(process.pid, signum)
        time.sleep(0.04)
    ((code, out, err),) = finish(process)
    first, *others = err.splitlines()
    assert (code, out, first) == (128 + signum, "", f"error: interrupted by {signum.name}")
    assert f"  rank 1 stood at {STEP}" in others
    assert all(line.startswith(("  rank ", "  ranks ")) for line in others), err
    runs.assert_nothing_left()


@slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_early_signal_leaves_nothing_behind(runs: Runs, signum: signal.Signals) -> None:
    for tenths in range(1, 25, 2):
        # As from a shell: where tests run in the background, SIGINT may be ignored.
        process = runs.start(*COMMAND, "sum.cl", "--nproc-per-node=3")
        time.sleep(tenths / 10)
        process.send_signal(signum)
        ((code, _, _),) = finish(process)
        # Before commlang has a handler, SIGTERM ends it as any other program.
        assert code in (0, 128 + signum, -signum)
        runs.assert_nothing_left()


RANK = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}


@slow
@pytest.mark.parametrize(
    ("rank", "host", "said"),
    [
        (0, "127.0.0.1", "another process has taken the port. Choose another MASTER_PORT"),
        (1, "127.0.0.1", "(what listens there gives no answer)"),
        (1, "no-such-host.invalid", "(there is no host 'no-such-host.invalid': "),
        (0, "no-such-host.invalid", "(there is no host 'no-such-host.invalid': "),
    ],
)
def test_a_rank_that_meets_nobody_says_why(runs: Runs, rank: int, host: str, said: str) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        place = {"MASTER_PORT": str(taken.getsockname()[1]), "MASTER_ADDR": host}
        variables = RANK | place | {"RANK": str(rank)}
        code, lines = run(runs, "sum.cl", "--timeout=4", **variables)
    assert code == 1
    start = f"commlang: rank {rank} failed while looking for the other ranks: rank {rank} "
    assert lines[-1].startswith(start)
    assert said in lines[-1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(
            ("--node-rank=0",),
            "node 0 of 2 cannot serve the others at 127.0.0.1:{port}: another process has taken "
            "the port. Choose another --master-port, the same on every node.",
            marks=slow,
        ),
        pytest.param(
            ("--node-rank=1", "--master-addr=no-such-host.invalid"),
            "node 1 of 2 did not meet the others at no-such-host.invalid:{port} (there is no host",
            marks=slow,
        ),
    ],
)
def test_a_node_that_meets_nobody_says_why(runs: Runs, options: tuple[str, ...], said: str) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        argv = ("--nnodes=2", "--nproc-per-node=1", "--rdzv-conf=timeout=3")
        code, lines = run(runs, "sum.cl", *argv, f"--master-port={port}", *options)
    assert code == 1
    assert lines[-1].startswith(f"error: {said.format(port=port)}")


FULL = Path("/dev/full")


@slow
@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "argv",
    [
        ("run", "sum.cl", "--nproc-per-node=2", "--iters=0", "--json"),
        ("run", "sum.cl", "--nproc-per-node=2", "--iters=0"),
        ("run", "sum.cl", "--dry-run", "--json"),
        ("lint", "sum.cl", "--output-format", "sarif"),
        ("fmt", "--diff", "sum.cl"),
        ("show", "gpipe"),
        ("bench", "all_reduce", "-e", "1Ki", "-n", "1", "--nproc-per-node=2"),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_told_whatever_was_written(runs: Runs, argv: tuple[str, ...]) -> None:
    (runs.folder / "sum.cl").write_text(SUM.replace("main(x", "main( x"))
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "commlang", *argv],
            cwd=runs.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(runs.temporary)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


LIMITED = """\
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
from commlang.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("argv", "output"),
    [
        (("fmt", "a.cl"), ""),
        pytest.param(("lint", "--fix", "a.cl"), "", marks=slow),
        pytest.param(("import", "a.csv", "--lower", "-o", "new.cl"), "new.cl", marks=slow),
        pytest.param(("new", "new.cl"), "new.cl", marks=slow),
    ],
)
def test_a_file_that_cannot_be_written_is_as_it_was(
    tmp_path: Path, argv: tuple[str, ...], output: str
) -> None:
    """Files may not grow beyond ten bytes, as on a disk that is full."""
    text = "pattern a( x: float32[8]):\n    send(x, dst=ranks.next)\n    recv(x, src=ranks.prev)\n"
    (tmp_path / "a.cl").write_text(text)
    (tmp_path / "a.csv").write_text("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *argv],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    written = argv[-1]
    assert f"cannot write {written}: File too large" in done.stderr
    assert (tmp_path / "a.cl").read_text() == text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.cl", "a.csv"], output


MOUNT = "mount -t tmpfs -o size={size} tmpfs full && TMPDIR=$PWD/full exec {command}"


@slow
@pytest.mark.parametrize(
    ("size", "said"),
    [("4k", "error: cannot keep the files of the run in "), ("64k", "No space left on device")],
)
def test_a_folder_for_the_run_that_is_full(runs: Runs, size: str, said: str) -> None:
    (runs.folder / "full").mkdir()
    command = f"{sys.executable} -m commlang run sum.cl --nproc-per-node=2 --iters=0"
    shell = MOUNT.format(size=size, command=command)
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", shell],
        cwd=runs.folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip("needs to mount a file system")
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("ranks", "times"),
    [(2, 10), pytest.param(64, 1, marks=slow), pytest.param(2, 200, marks=slow)],
)
def test_many_runs_and_many_ranks_leave_nothing(runs: Runs, ranks: int, times: int) -> None:
    """No process and so no port, no file where they are told to be, and none in shared memory."""
    memory = Path("/dev/shm")
    before = set(memory.iterdir())
    argv = ("sum.cl", f"--nproc-per-node={ranks}", "--iters=1", "--warmup=0")
    for _ in range(times):
        assert run(runs, *argv) == (0, [])
    deadline = time.monotonic() + DEADLINE_S
    # What others put there meanwhile goes again.
    while set(memory.iterdir()) - before and time.monotonic() < deadline:
        time.sleep(0.5)
    assert set(memory.iterdir()) <= before
