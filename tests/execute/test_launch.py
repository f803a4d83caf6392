"""Ranks in real processes: how they start, what they return, and what is left of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlang.errors import UsageError
from commlang.execute.options import LaunchOptions, choose_start_method
from tests.cli import processes
from tests.cli.processes import DEADLINE_S, ROOT, Process, living
from tests.ports import free_port
from tests.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).with_name("rank_work.py")


@dataclass
class Runs:
    """Starts the program, and knows which processes and files come of it."""

    directory: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    sessions: set[int] = field(default_factory=set[int])

    def environment(self) -> dict[str, str]:
        marks = {"TMPDIR": str(self.directory), "COMMLANG_MARK": self.mark}
        return os.environ | {"PYTHONPATH": str(ROOT)} | marks

    def warm(
        self, way: str = "launch", *, variables: dict[str, str] | None = None, **request: Any
    ) -> Warm:
        """The program, with torch already loaded."""
        argv = [json.dumps({"way": way, **request})]
        environment = self.environment() | (variables or {})
        process = Warm(argv, self.directory, environment, module="tests.execute.rank_work")
        self.sessions.add(process.pid)
        return process

    def start(
        self, way: str = "launch", *, under: tuple[str, ...] = (), **request: Any
    ) -> subprocess.Popen[str]:
        command = [sys.executable, *under, str(PROGRAM), json.dumps({"way": way, **request})]
        # Not in this process's group, so that a Ctrl-C can be played to all of it.
        return subprocess.Popen(
            command,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def processes(self) -> list[int]:
        """The processes of these runs that are still there."""
        return living(self.mark, self.sessions)

    def assert_nothing_left(self, *, within_s: float = 0.0) -> None:
        """Processes go at once, or within some time if nobody waits for them; files with them."""
        deadline = time.monotonic() + within_s
        while (self.processes() or self.files()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (self.processes(), self.files()) == ([], [])

    def files(self) -> list[str]:
        # torchrun keeps a directory of logs, which is its own business.
        return [p.name for p in self.directory.iterdir() if not p.name.startswith("torchelastic_")]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    for pid in runs.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def finish(process: Process) -> tuple[int, str, str]:
    (found,) = processes.finish(process)
    return found


def results(out: str) -> list[list[Any]]:
    return json.loads(out.splitlines()[-1])["results"]


@pytest.mark.parametrize(
    ("method", "ranks"), [("auto", 3), pytest.param("spawn", 2, marks=pytest.mark.slow)]
)
def test_ranks_return_their_results_and_only_rank_0_speaks(
    runs: Runs, method: str, ranks: int
) -> None:
    options = {"nproc_per_node": ranks, "start_method": method}
    code, out, err = finish(runs.start(options=options))
    assert (code, err) == (0, "")
    total = sum(range(1, ranks + 1)) * ranks**4
    assert results(out) == [[rank, total, rank] for rank in range(ranks)]
    assert [line for line in out.splitlines() if line.startswith("hello")] == ["hello from rank 0"]
    runs.assert_nothing_left()


WAITED = "  ranks 0, 2 waited for rank 1 at demo.cl:17 all_reduce(x)"


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("kill", 1, "RunFailed: rank 1 was killed by SIGKILL at demo.cl:16 step() of rank 1"),
        ("raise", 1, "RunFailed: rank 1 failed at demo.cl:16 step() of rank 1: ValueError: boom"),
        (
            "refuse",
            2,
            "RunFailed: rank 1 failed at demo.cl:16 step() of rank 1: ensure failed at demo.cl:16",
        ),
        ("vanish", 1, "RunFailed: rank 1 died at demo.cl:16 step() of rank 1"),
        (
            "exit",
            1,
            "RunFailed: rank 1 failed at demo.cl:16 step() of rank 1: "
            "left before its last statement by sys.exit(0)",
        ),
    ],
)
def test_a_failing_rank_is_named_with_its_statement_and_who_waited(
    runs: Runs, fault: str, code: int, message: str
) -> None:
    returned, _, err = finish(runs.warm(fault=fault, options={"nproc_per_node": 3}))
    lines = err.splitlines()
    assert (returned, lines[0]) == (code, message)
    # Where the others were when they were ended depends on how far they had come; that they end
    # with the run, and without a word of their own, does not.
    assert all(line.startswith(("  rank", "  ranks")) for line in lines[1:])
    runs.assert_nothing_left()


def test_what_native_code_wrote_is_quoted_when_a_rank_is_aborted(runs: Runs) -> None:
    code, _, err = finish(runs.warm(fault="abort", options={"nproc_per_node": 3}))
    assert code == 1
    lines = err.splitlines()
    assert lines[0] == "RunFailed: rank 1 was killed by SIGABRT at demo.cl:16 step() of rank 1"
    assert lines[-2:] == ["  it wrote:", "    terminate called"]
    runs.assert_nothing_left()


def test_a_rank_that_hangs_is_named_after_the_timeout(runs: Runs) -> None:
    run = runs.warm(fault="hang", timeout=2.0, options={"nproc_per_node": 3})
    code, _, err = finish(run)
    first, *rest = err.splitlines()
    assert code == 1
    assert first.startswith("RunFailed: rank 1 made no progress for ")
    assert first.endswith(" s at demo.cl:16 step() of rank 1 and waited for no one")
    assert rest == [WAITED]
    runs.assert_nothing_left()


def test_a_rank_that_does_not_join_is_named_after_the_timeout(runs: Runs) -> None:
    code, _, err = finish(runs.warm(fault="late", timeout=2.0, options={"nproc_per_node": 3}))
    first, *rest = err.splitlines()
    assert code == 1
    assert first.startswith("RunFailed: rank 1 made no progress for ")
    assert first.endswith(" s before joining the group and waited for no one")
    assert rest == ["  ranks 0, 2 waited for rank 1 while joining the group"]
    runs.assert_nothing_left()


def test_a_rank_that_is_killed_before_it_joins_is_named_at_once(runs: Runs) -> None:
    code, _, err = finish(runs.warm(fault="kill early", options={"nproc_per_node": 3}))
    lines = err.splitlines()
    assert code == 1
    assert lines[0] == "RunFailed: rank 1 was killed by SIGKILL before joining the group"
    assert all(line.startswith(("  rank", "  ranks")) for line in lines[1:])
    runs.assert_nothing_left()


def close_to_the_fault(run: Warm) -> None:
    """Wait until the ranks work; what keeps them from it would show as a missing line."""
    run.wait_for("close to the fault", DEADLINE_S)


@pytest.mark.parametrize("to_all", [False, True], ids=["to the launcher", "to all, as a terminal"])
def test_ctrl_c_ends_all_ranks(runs: Runs, to_all: bool) -> None:
    run = runs.warm(fault="hang", options={"nproc_per_node": 3})
    close_to_the_fault(run)
    if to_all:
        os.killpg(run.pid, signal.SIGINT)
    else:
        run.send_signal(signal.SIGINT)
    code, _, err = finish(run)
    assert code == 128 + signal.SIGINT
    first, *rest = err.splitlines()
    assert first == "RunInterrupted: interrupted by SIGINT"
    assert any(line.startswith("  rank") and " at demo.cl:" in line for line in rest)
    runs.assert_nothing_left()


def test_ranks_and_files_go_with_a_launcher_that_is_killed(runs: Runs) -> None:
    run = runs.warm(fault="hang", options={"nproc_per_node": 3})
    close_to_the_fault(run)
    run.kill()
    assert finish(run)[0] == -signal.SIGKILL
    runs.assert_nothing_left(within_s=DEADLINE_S)


def two_nodes(runs: Runs, **request: Any) -> list[tuple[int, str, str]]:
    port = free_port()
    nodes = [
        runs.warm(
            options={"nproc_per_node": 2, "nnodes": 2, "node_rank": node, "master_port": port},
            **request,
        )
        for node in (1, 0)
    ]
    return [finish(node) for node in nodes][::-1]


@pytest.mark.slow  # by default the next one, and the command on two nodes in tests/cli
def test_two_nodes(runs: Runs) -> None:
    (code0, out0, err0), (code1, out1, err1) = two_nodes(runs)
    assert (code0, code1, err0, err1) == (0, 0, "", "")
    assert results(out0) == [[0, 2560.0, 0], [1, 2560.0, 1]]
    assert results(out1) == [[2, 2560.0, 0], [3, 2560.0, 1]]
    assert "hello" not in out1
    runs.assert_nothing_left()


def test_both_nodes_end_and_name_the_rank_that_was_killed_on_one(runs: Runs) -> None:
    (code0, _, err0), (code1, _, err1) = two_nodes(runs, fault="kill")
    assert (code0, code1) == (1, 1)
    cause = "at demo.cl:16 step() of rank 1"
    assert err0.splitlines()[0] == f"RunFailed: rank 1 was killed by SIGKILL {cause}"
    assert err1.splitlines()[0].startswith("RunFailed: rank 1 ")
    assert cause in err1.splitlines()[0]
    runs.assert_nothing_left()


def test_a_node_that_meets_nobody_says_so(runs: Runs) -> None:
    options = {
        "nproc_per_node": 1,
        "nnodes": 2,
        "node_rank": 1,
        "master_port": free_port(),
        "rdzv_conf": {"timeout": 1},
    }
    code, _, err = finish(runs.warm(options=options))
    assert code == 1
    # After a line of torch's own, from native code.
    assert "\nCommlangError: node 1 of 2 did not meet the others at 127.0.0.1:" in f"\n{err}"
    runs.assert_nothing_left()


def handles(pid: int, signum: signal.Signals) -> bool:
    """Whether a process has a handler for a signal, as a launcher has once it meets others."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = re.search(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (signum - 1) & 1)


def test_ctrl_c_is_heard_while_a_node_waits_for_the_others(runs: Runs) -> None:
    options = {"nproc_per_node": 1, "nnodes": 2, "node_rank": 1, "master_port": free_port()}
    run = runs.warm(options=options)
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and not handles(run.pid, signal.SIGTERM):
        time.sleep(0.05)
    time.sleep(1)  # Into the native wait; an earlier signal is heard as well.
    run.send_signal(signal.SIGINT)
    code, _, err = finish(run)
    assert code == 128 + signal.SIGINT
    assert "interrupted by SIGINT" in err
    runs.assert_nothing_left()


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=3")


@pytest.mark.slow
def test_ranks_of_torchrun(runs: Runs) -> None:
    code, out, _ = finish(runs.start("rank", under=TORCHRUN))
    assert code == 0
    # Lines of different ranks may be mixed, but not the parts between braces.
    found = [json.loads(text) for text in re.findall(r"\{[^{}]*\}", out)]
    assert sorted(line["results"][0] for line in found) == [[r, 486.0, r] for r in range(3)]
    runs.assert_nothing_left()


@pytest.mark.slow
def test_a_survivor_tells_what_happened_under_torchrun(runs: Runs) -> None:
    code, _, err = finish(runs.start("rank", under=TORCHRUN, fault="kill"))
    assert code == 1
    told = [line for line in err.splitlines() if line.startswith("commlang: ")]
    assert told == ["commlang: rank 1 died at demo.cl:16 step() of rank 1"]
    runs.assert_nothing_left()


def test_ranks_that_do_not_come_are_named(runs: Runs) -> None:
    # As srun would start them, but for the one that never appears.
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    lone = place | {"RANK": "0", "WORLD_SIZE": "2"}
    code, _, err = finish(runs.warm("rank", variables=lone, timeout=1.0))
    assert code == 1
    assert (
        "rank 0 failed while looking for the other ranks: rank 1 of 2 did not come within 1 s"
        in err
    )
    runs.assert_nothing_left()


def test_a_rank_that_is_killed_before_the_rendezvous_is_named_by_each_other(runs: Runs) -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "3"}
    ranks = [
        runs.warm("rank", variables=place | {"RANK": rank}, fault="kill early", timeout=3.0)
        for rank in ("0", "1", "2")
    ]
    killed = finish(ranks[1])
    assert killed == (-signal.SIGKILL, "", "")
    for rank in (0, 2):
        code, _, err = finish(ranks[rank])
        assert code == 1
        looking = f"rank {rank} failed while looking for the other ranks: "
        assert f"{looking}rank 1 of 3 did not come within 3 s" in err
    runs.assert_nothing_left()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nnodes": "1:4"}, "--nnodes 1:4: a pattern is proven for one world"),
        ({"nnodes": "two"}, "--nnodes two: must be a number from 1 up"),
        ({"nproc_per_node": 0}, "--nproc-per-node 0: must be a number from 1 up"),
        ({"nnodes": 2, "node_rank": 2}, "--node-rank 2: must be from 0 to 1"),
        ({"nnodes": 2, "standalone": True}, "--standalone is for one node, but --nnodes is 2"),
        ({"rdzv_backend": "etcd"}, "--rdzv-backend etcd: write static or c10d"),
        ({"start_method": "forkserver"}, "--start-method forkserver: write auto, fork or spawn"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        LaunchOptions(**options).checked()
    assert str(caught.value).startswith(message)


def test_options_as_torchrun_reads_them() -> None:
    assert LaunchOptions(nnodes="2:2").nodes == 2
    assert LaunchOptions().is_local
    assert not LaunchOptions(rdzv_backend="c10d").is_local
    static = LaunchOptions(nnodes=2, node_rank=1, master_addr="n0", master_port=5)
    assert static.rendezvous() == ("static", "n0:5", {"rank": 1})
    dynamic = LaunchOptions(nnodes=2, rdzv_endpoint="n0:6", rdzv_conf={"timeout": 9})
    assert dynamic.rendezvous() == ("c10d", "n0:6", {"timeout": 9})


def test_fork_only_where_it_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert choose_start_method("auto", cuda=False) == "fork"
    assert choose_start_method("auto", cuda=True) == "spawn"
    assert choose_start_method("auto", cuda=False, local=False) == "spawn"
    assert choose_start_method("fork", cuda=True) == "fork"
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert choose_start_method("auto", cuda=False) == "spawn"
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert choose_start_method("auto", cuda=False) == "spawn"
