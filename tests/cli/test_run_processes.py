"""`commlang run` on ranks of other launchers and on several nodes, and how it fails."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.cli.processes import COMMAND, DEADLINE_S, ROOT, Runs, finish
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TORCHRUN = ("-m", "torch.distributed.run")

PATTERN = """\
extern step(x: update float32[n])

pattern main(x: float32[n], n = 8):
    ensure x == sum(old(x) @ r for r in ranks)

    step(x)
    all_reduce(x)
"""
FUNCTIONS = """\
import os, pathlib, signal, time
import torch.distributed as dist


def only_rank_1(act):
    def step(x):
        if dist.get_rank() == 1:
            act()
    return step


def say_and_sleep():
    pathlib.Path("asleep").touch()
    time.sleep(300)


def refuse():
    raise ValueError("boom")


leave = only_rank_1(lambda: os._exit(3))
vanish = only_rank_1(lambda: os._exit(0))
kill = only_rank_1(lambda: os.kill(os.getpid(), signal.SIGKILL))
fail = only_rank_1(refuse)
stall = only_rank_1(say_and_sleep)
"""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path / "work", tmp_path / "temporary")
    for folder in (runs.folder, runs.temporary):
        folder.mkdir()
    (runs.folder / "sum.cl").write_text(PATTERN)
    (runs.folder / "functions.py").write_text(FUNCTIONS)
    yield runs
    for pid in runs.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


AT = "at `step(x)` (sum.cl:6:5)"
WAITED = "  {ranks} waited for rank 1 at `all_reduce(x)` (sum.cl:7:5), after `step(x)` (sum.cl:6:5)"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("leave", f"rank 1 ended with exit code 3 {AT}"),
        ("vanish", f"rank 1 died {AT}"),
        ("kill", f"rank 1 was killed by SIGKILL {AT}"),
        ("fail", f"rank 1 failed {AT}: ValueError: boom"),
    ],
)
def test_a_rank_that_dies_is_named(runs: Runs, what: str, message: str) -> None:
    argv = ("sum.cl", "--nproc-per-node=3", f"--extern=step=functions:{what}")
    ((code, out, err),) = finish(runs.warm(*argv))
    first, *others = err.splitlines()
    assert (code, out, first) == (1, "", f"error: {message}")
    # How far the others had come depends on the machine.
    assert all(line.startswith(("  rank ", "  ranks ")) for line in others)
    runs.assert_nothing_left()


def test_a_rank_that_stalls_is_named_with_those_that_waited(runs: Runs) -> None:
    argv = ("sum.cl", "--nproc-per-node=3", "--timeout=3", "--extern=step=functions:stall")
    ((code, out, err),) = finish(runs.warm(*argv))
    first, *others = err.splitlines()
    assert (code, out) == (1, "")
    assert re.fullmatch(
        rf"error: rank 1 made no progress for \d+ s {re.escape(AT)} and waited for no one", first
    )
    assert others == [WAITED.format(ranks="ranks 0, 2")]
    runs.assert_nothing_left()


@pytest.mark.parametrize("whole_group", [True, False])
def test_ctrl_c(runs: Runs, whole_group: bool) -> None:
    argv = ("sum.cl", "--nproc-per-node=3", "--extern=step=functions:stall")
    process = runs.start(*COMMAND, *argv) if whole_group else runs.warm(*argv)
    deadline = time.monotonic() + DEADLINE_S
    while not (runs.folder / "asleep").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)  # for the others to come to their all_reduce
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    ((code, out, err),) = finish(process)
    first, *others = err.splitlines()
    assert (code, out, first) == (130, "", "error: interrupted by SIGINT")
    assert f"  rank 1 stood {AT}" in others
    runs.assert_nothing_left()


def test_a_rank_of_torchrun_that_dies_is_named(runs: Runs) -> None:
    argv = ("sum.cl", "--extern=step=functions:kill")
    ((code, out, err),) = finish(runs.start(*TORCHRUN, "--nproc-per-node=2", *COMMAND, *argv))
    assert (code, out) == (1, "")
    told = [line for line in err.splitlines() if line.startswith("commlang:")]
    assert told == [f"commlang: rank 1 died {AT}"]
    runs.assert_nothing_left()


def holds(out: str, ranks: int, hosts: str = "1 host") -> bool:
    return f"  {ranks} ranks on gloo, cpu, {hosts}" in out and "holds on every rank" in out


def without_torch(err: str) -> list[str]:
    """Less the warnings of native code, as that a store is gone before its last client is."""
    native = re.compile(r"\[W\d{4} |Exception raised from |frame #\d+: |$")
    return [line for line in err.splitlines() if not native.match(line)]


def test_two_launchers_on_two_nodes(runs: Runs) -> None:
    port = free_port()
    argv = ("sum.cl", "--nnodes=2", f"--master-port={port}", "--nproc-per-node=1", "--iters=1")
    nodes = [runs.warm(*argv, f"--node-rank={node}") for node in range(2)]
    (code, out, err), (other_code, other_out, other_err) = finish(*nodes)
    assert (code, without_torch(err)) == (0, [])
    assert (other_code, other_out, without_torch(other_err)) == (0, "", [])
    assert holds(out, 2)
    runs.assert_nothing_left()


@pytest.mark.slow  # by default ranks in such an environment, below
def test_two_torchrun_agents(runs: Runs) -> None:
    port = free_port()
    options = ("--nnodes=2", "--nproc-per-node=1", f"--master-port={port}")
    nodes = [
        runs.start(*TORCHRUN, *options, f"--node-rank={node}", *COMMAND, "sum.cl", "--iters=1")
        for node in range(2)
    ]
    (code, out, err), (other_code, other_out, _) = finish(*nodes)
    assert (code, other_code, other_out) == (0, 0, ""), err
    assert holds(out, 2)
    runs.assert_nothing_left()


def slurm(rank: int, port: int) -> dict[str, str]:
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_STEP_ID": "0",
        "SLURM_JOB_ID": "7",
        "SLURM_NODEID": "0",
        "MASTER_PORT": str(port),
        "MASTER_ADDR": "127.0.0.1",
    }


def open_mpi(rank: int, port: int) -> dict[str, str]:
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def torchrun(rank: int, port: int) -> dict[str, str]:
    """As of two agents, on two nodes."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "GROUP_RANK": str(rank),
        "GROUP_WORLD_SIZE": "2",
        "TORCHELASTIC_RUN_ID": "7",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


@pytest.mark.parametrize("launcher", [slurm, open_mpi, torchrun])
def test_ranks_of_other_launchers(
    runs: Runs, launcher: Callable[[int, int], dict[str, str]]
) -> None:
    port = free_port()
    ranks = [runs.warm("sum.cl", "--iters=1", **launcher(rank, port)) for rank in range(2)]
    first, other = finish(*ranks)
    assert (first[0], first[2]) == (0, "")
    assert holds(first[1], 2)
    assert other == (0, "", "")
    runs.assert_nothing_left()


def test_a_reader_that_goes_away(runs: Runs) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, *COMMAND, "sum.cl", "--nproc-per-node=2", "--iters=0"],
        cwd=runs.folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=writing,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=DEADLINE_S,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
