"""`commlang run --backend mpi`: alone, under mpirun, and what is said when it fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlang.execute.mpi import found
from commlang.execute.mpi.found import find_mpirun
from commlang.execute.mpi.launch import launch_mpi
from commlang.execute.options import LaunchOptions

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
DEADLINE_S = 100

STEP = """\
extern work(x: update float32[n]):
    cost 2ms

pattern step(x: float32[n], n = 1Ki):
    work(x)
    all_reduce(x)
"""

FUNCTIONS = """\
import os, signal, sys, time
from pathlib import Path

import torch.distributed as dist


def chosen():
    print("rank", dist.get_rank(), "is here", file=sys.stderr)
    Path(f"pid-{dist.get_rank()}").write_text(str(os.getpid()))
    return dist.get_rank() == 1


def stall(x):
    if chosen():
        Path("stalls").touch()
        time.sleep(90)


def die(x):
    if chosen():
        os.kill(os.getpid(), signal.SIGKILL)


def stop(x):
    if chosen():
        os.kill(os.getpid(), signal.SIGSTOP)


def leave(x):
    if chosen():
        os._exit(3)


def fail(x):
    if chosen():
        raise ValueError("boom")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "step.cl").write_text(STEP)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "tmp").mkdir()
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    """With a TMPDIR of its own, in which all that a run leaves behind would be."""
    return os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")}


def command(*arguments: str, does: str = "run") -> list[str]:
    return [sys.executable, "-m", "commlang", does, *arguments, "--backend", "mpi"]


def run(folder: Path, *arguments: str, does: str = "run") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, does=does),
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def assert_nothing_is_left(folder: Path) -> None:
    assert list((folder / "tmp").iterdir()) == []
    assert_no_rank_is_left(folder)


def assert_no_rank_is_left(folder: Path) -> None:
    pids = [int(file.read_text()) for file in folder.glob("pid-*")]
    wait_until(lambda: not any(map(running, pids)))


def running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def wait_until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow  # by default, docs/running.md shows one that is run
def test_alone_it_starts_mpirun(folder: Path) -> None:
    done = run(folder, "ring_all_reduce", "--set", "n=1000", "--nproc-per-node", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 ranks on commlang_mpi, cpu, 1 host" in done.stdout
    assert "ensure x == op(old(x) @ r for r in ranks): holds on every rank" in done.stdout
    assert_nothing_is_left(folder)


@pytest.mark.slow
def test_bench_starts_mpirun_too(folder: Path) -> None:
    pick = ["-e", "1Ki", "-n", "2", "--nproc-per-node", "2"]
    done = run(folder, "all_reduce", *pick, does="bench")
    assert (done.returncode, done.stderr) == (0, "")
    assert "# 2 ranks on commlang_mpi, cpu;" in done.stdout
    assert "# Out of bounds values : 0 OK" in done.stdout
    assert_nothing_is_left(folder)


def test_under_mpirun_it_joins(folder: Path) -> None:
    done = mpirun(folder, *command("ring_all_reduce", "--iters", "1"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 ranks on commlang_mpi, cpu, 1 host" in done.stdout
    assert "holds on every rank" in done.stdout
    assert_nothing_is_left(folder)


def mpirun(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(
        [find_mpirun(), "--oversubscribe", "-n", "2", *command],
        cwd=folder,
        env=environment(folder) | root,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_any_program_may_use_the_backend(folder: Path) -> None:
    page = (ROOT / "docs" / "running.md").read_text("utf-8")
    text = page.split("file: program.py -->\n```python\n")[1].split("```")[0]
    (folder / "program.py").write_text(text)
    done = mpirun(folder, sys.executable, "program.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"rank {r}: [2.0, 2.0, 2.0]" for r in range(2)]


def test_a_program_whose_rank_fails_ends_on_all_ranks(folder: Path) -> None:
    lines = (
        "import commlang, torch, torch.distributed as dist",
        "dist.init_process_group(commlang.register_mpi(), init_method='mpi://')",
        "assert dist.get_rank() != 1, 'boom'",
        "dist.all_reduce(torch.ones(3))",
    )
    (folder / "program.py").write_text("\n".join(lines))
    done = mpirun(folder, sys.executable, "program.py")
    assert done.returncode != 0
    assert "[rank1]: AssertionError: boom" in done.stderr


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("die", "rank 1 was killed by SIGKILL at `work(x)` (step.cl:5:5)"),
        pytest.param(
            "leave",
            "rank 1 ended with exit code 3 at `work(x)` (step.cl:5:5)",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "fail",
            "rank 1 failed at `work(x)` (step.cl:5:5): ValueError: boom",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "stop",
            r"rank 1 made no progress for \d+ s at `work(x)` (step.cl:5:5), being stopped",
            marks=pytest.mark.slow,
        ),
        ("stall", r"rank 1 made no progress for \d+ s at `work(x)` (step.cl:5:5) and waited for"),
    ],
)
def test_the_rank_at_fault_is_named(folder: Path, function: str, said: str) -> None:
    pick = ["--extern", f"work=functions:{function}", "--timeout", "6", "--nproc-per-node", "2"]
    done = run(folder, "step.cl", *pick)
    assert done.returncode == 1, done.stderr
    assert re.search(re.escape(said).replace(r"\\d\+", r"\d+"), done.stderr), done.stderr
    assert "rank 0 is here\n" in done.stderr
    assert "prterun" not in done.stderr
    assert_nothing_is_left(folder)


@pytest.mark.parametrize(
    "signum",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_the_ranks(folder: Path, signum: signal.Signals) -> None:
    pick = ["--extern", "work=functions:stall", "--nproc-per-node", "2"]
    process = subprocess.Popen(
        command("step.cl", *pick),
        cwd=folder,
        env=environment(folder),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((folder / "stalls").exists)
    process.send_signal(signum)
    _, said = process.communicate(timeout=DEADLINE_S)
    if signum != signal.SIGKILL:
        assert process.returncode == 128 + signum
        assert f"interrupted by {signum.name}" in said
        assert "rank 1 stood at `work(x)` (step.cl:5:5)" in said
        assert_nothing_is_left(folder)
    wait_until(lambda: not list((folder / "tmp").iterdir()))
    assert_no_rank_is_left(folder)


def test_what_mpi_does_not_do_is_refused_before_the_run(folder: Path) -> None:
    text = "pattern main(x: float8_e5m2[n], n = 8):\n    all_reduce(x)\n"
    (folder / "short.cl").write_text(text)
    done = run(folder, "short.cl")
    assert done.returncode == 1
    assert done.stderr.startswith("error[CL261]: MPI has no all_reduce of float8_e5m2")
    assert done.stdout == ""
    done = run(folder, "step.cl", "--device", "cuda")
    assert done.returncode == 1
    assert "error[CL263]" in done.stderr


def test_nodes_are_left_to_mpirun(folder: Path) -> None:
    done = run(folder, "step.cl", "--nnodes", "2")
    assert done.returncode == 2
    assert done.stderr.startswith("error: commlang starts ranks of MPI on one node; on several")


def test_ranks_of_another_launcher_are_told_to_use_mpirun(folder: Path) -> None:
    ranks = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    done = subprocess.run(
        command("step.cl"),
        cwd=folder,
        env=environment(folder) | ranks | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2
    assert "MPI calls this rank 0 of 1, but its environment says rank 0 of 2" in done.stderr
    assert "start the ranks with `mpirun -n 2`" in done.stderr


def test_a_launcher_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "mpirun"
    broken.write_text("#!/bin/sh\necho no such option >&2\nexit 7\n")
    broken.chmod(0o755)
    monkeypatch.setattr("commlang.execute.mpi.launch.find_mpirun", lambda: str(broken))
    with pytest.raises(Exception, match="mpirun did not start the ranks: no such option"):
        launch_mpi(print, (), LaunchOptions(nproc_per_node=2))


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found.shutil, "which", lambda name, path=None: None)  # pyright: ignore
    with pytest.raises(Exception, match=r"`mpirun` is not there, .*`pip install 'commlang\[mpi\]"):
        find_mpirun()
    monkeypatch.setattr(found, "find_spec", lambda name: None)  # pyright: ignore
    with pytest.raises(Exception, match=r"MPI needs mpi4py .*`pip install 'commlang\[mpi\]'`"):
        find_mpirun()
