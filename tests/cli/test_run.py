"""`commlang run` as a command: what it prints, its options, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlang.cli import main
from commlang.plan import Plan
from commlang.report.run import RunReport
from tests.cli.processes import finish
from tests.ports import free_port
from tests.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
DEADLINE_S = 100

SUM = """\
extern work(x: update float32[n], times: int):
    \"\"\"Multiply, say.\"\"\"
    cost 1ms

pattern main(x: float32[n], n = 6, root = 0):
    preset large: world = 3, n = 4Ki
    ensure x == sum(old(x) @ r for r in ranks)

    work(x, 1)
    all_reduce(x)
"""
WRONG = """\
pattern main(x: float32[n], y: float32[n], n = 6):
    ensure x == max(old(x) @ r for r in ranks)
    ensure y == old(y)

    all_reduce(x)
    settle(x)

extern settle(x: update float32[n])
"""
RING = """\
pattern main(x: float32[n], n = 8):
    send(x, dst=ranks.next)
    recv(x, src=ranks.prev)
"""
FUNCTIONS = """\
def scale(x, times):
    x.mul_(times)

def double(x, times):
    x.mul_(2)

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with patterns, and with Python functions for their externs."""
    for name, text in {"sum.cl": SUM, "wrong.cl": WRONG, "ring.cl": RING}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    return tmp_path


def run(
    folder: Path, *argv: str, under: tuple[str, ...] = (), stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"} | variables
    if not under:
        process = Warm(["run", *argv], folder, environment, stdin=stdin)
        ((code, out, err),) = finish(process)
        return subprocess.CompletedProcess(process.args, code, out, err)
    return subprocess.run(
        [*TORCHRUN, *under, "-m", "commlang", "run", *argv],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.fixture
def called(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """`commlang run` in this process, for what ends before any rank is started."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])

    def call(*argv: str) -> tuple[int, str, str]:
        code = main(["run", *argv])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def measured(text: str) -> str:
    """The text with measured numbers, and the columns that they widen, made equal."""
    text = re.sub(r"\b[\d.]+(e[+-]\d+)? (ns|µs|ms|s|[kMG]B/s)(?= |,|$)", "# ", text, flags=re.M)
    text = re.sub(r"torch \S+", "torch #", text)
    return "\n".join(re.sub(r"(?<=\S) +", " ", line).rstrip() for line in text.splitlines())


def test_report_of_a_run(folder: Path) -> None:
    done = run(folder, "sum.cl", "--nproc-per-node", "2", "--extern", "work=functions:scale")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        measured(done.stdout)
        == """\
main (n = 6, root = 0)
  2 ranks on gloo, cpu, 1 host; torch #
  proven before the run: matched, agreeing collectives, deadlock-free under rendezvous (4 events)
  externs: work = functions:scale

  line statement calls bytes median max algbw busbw
   9:5 work(x, 1) 5 # #
  10:5 all_reduce(x) 5 24 B # # # #

  5 iterations: median # , min # , max # (slowest rank)
  ensure x == sum(old(x) @ r for r in ranks): holds on every rank"""
    )


def test_nothing_is_said_of_what_was_not_done(folder: Path) -> None:
    pattern = "extern f(x: update float32[4])\n\npattern main(x: float32[4]):\n    f(x)\n"
    done = run(folder, "-", "--iters=0", "--nproc_per_node=1", "--warmup=0", stdin=pattern)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        measured(done.stdout)
        == """\
main
  1 rank on gloo, cpu, 1 host; torch #
  proven before the run: matched, agreeing collectives, deadlock-free under rendezvous (1 event)
  without a Python function: `f`, which takes its cost's time

  run once, to check it; not timed (--iters 0)
  the pattern has no `ensure`, so its result was not checked"""
    )


def test_contract_that_does_not_hold(folder: Path) -> None:
    done = run(folder, "wrong.cl", "--nproc-per-node=3", "--iters=1", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    report = RunReport.model_validate_json(done.stdout)
    assert not report.ok
    first, second = report.contracts
    assert (first.ok, first.where) == (False, "wrong.cl:2:5")
    assert first.text == "ensure x == max(old(x) @ r for r in ranks)"
    assert (second.ok, second.failures) == (True, [])
    assert [failure.rank for failure in first.failures] == [0, 1, 2]
    for failure in first.failures:
        assert (failure.tensor, failure.index, failure.wrong, failure.elements) == ("x", [0], 6, 6)
        assert isinstance(failure.expected, float)
        assert isinstance(failure.got, float)
        assert failure.expected < failure.got
    text = run(folder, "wrong.cl", "--nproc-per-node=3", "--iters=0")
    assert text.returncode == 1
    assert (
        f"""\
  ensure x == max(old(x) @ r for r in ranks): FAILED
    at wrong.cl:2:5
    {first.failures[0].text}
    {first.failures[1].text}
    {first.failures[2].text}
  ensure y == old(y): holds on every rank
"""
        in text.stdout
    )


def test_extern_that_breaks_the_contract(folder: Path) -> None:
    done = run(
        folder, "sum.cl", "--nproc-per-node=2", "--iters=0", "--extern=work=functions:double"
    )
    assert done.returncode == 1
    found = re.findall(r"rank (\d): x\[0\] is (\d+), expected (\d+); 6 of 6", done.stdout)
    assert [(rank, int(got) / int(expected)) for rank, got, expected in found] == [
        ("0", 2.0),
        ("1", 2.0),
    ]


def test_report_as_json(folder: Path) -> None:
    argv = ("sum.cl", "--preset", "large", "--set", "root=1", "--seed", "7", "--iters", "3")
    done = run(folder, *argv, "--warmup", "2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = RunReport.model_validate_json(done.stdout)
    assert RunReport.model_validate(json.loads(done.stdout)) == report
    assert (report.version, report.ok, report.pattern, report.path) == (
        1,
        True,
        "main",
        str(folder / "sum.cl"),
    )
    assert (report.world, report.seed, report.events) == (3, 7, 6)
    assert report.parameters == {"n": 4096, "root": 1}
    assert (report.backend, report.device, len(report.hosts)) == ("gloo", "cpu", 1)
    assert report.externs == {"work": None}
    work, reduce = report.statements
    assert (work.operation, work.line, work.column, work.calls, work.size) == ("work", 9, 5, 3, 0)
    assert (work.algbw, work.busbw) == (None, None)
    assert work.median >= 0.001
    assert (reduce.operation, reduce.ranks, reduce.calls) == ("all_reduce", 3, 3)
    assert (reduce.text, reduce.size) == ("all_reduce(x)", 4 * 4096)
    assert 0 < reduce.median <= reduce.max
    assert reduce.algbw is not None
    assert reduce.algbw == pytest.approx(reduce.size / reduce.median / 1e9)
    assert reduce.busbw == pytest.approx(reduce.algbw * 4 / 3)
    totals = report.totals
    assert (totals.iterations, totals.bytes_sent) == (3, 0)
    assert work.median <= totals.min <= totals.median <= totals.max
    assert [contract.ok for contract in report.contracts] == [True]


def test_data_follow_from_the_seed(folder: Path) -> None:
    def first_wrong(seed: int) -> str:
        argv = ("wrong.cl", "--nproc-per-node=2", "--iters=0", "--warmup=0", f"--seed={seed}")
        return run(folder, *argv).stdout

    first = first_wrong(1)
    assert first == first_wrong(1)
    assert first != first_wrong(2)


def test_dry_run_prints_the_plan_and_starts_nothing(folder: Path) -> None:
    done = run(folder, "ring_all_reduce", "--dry-run", "--set=n=1Ki", "--nproc-per-node=3")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ring_all_reduce (n = 1Ki, op = sum")
    assert lines[1:4] == [
        "  3 ranks, 30 events",
        "  proven: matched, agreeing collectives, deadlock-free under rendezvous",
        "  groups: world [0, 1, 2]",
    ]
    assert lines[5] == "  rank 0 does 6 actions:"
    assert [line.split()[0] for line in lines[6:]] == [
        *("batch", "run", "batch", "run", "batch", "batch")
    ]
    done = run(folder, "ring_all_reduce", "--dry-run", "--set=n=1Ki", "--json")
    plan = Plan.from_json(done.stdout)
    assert (plan.world, plan.parameters["n"], plan.events) == (4, 1024, 60)
    assert plan.fingerprint == json.loads(done.stdout)["fingerprint"]


def test_dry_run_with_imports_names_files(folder: Path) -> None:
    done = run(folder, "hierarchical_all_reduce", "--dry-run")
    files = [Path(line.strip()).name for line in done.stdout.splitlines() if line.endswith(".cl")]
    assert files == ["ring_all_reduce.cl", "hierarchical_all_reduce.cl"]
    assert all(len(line) <= 100 for line in done.stdout.splitlines() if not line.endswith(".cl"))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--set", "n"], "--set n: write name=value, as in `--set n=4Ki`"),
        (["--set", "k=3"], "--set k: `main` has no such parameter; it has n, root"),
        (["--set", "n=m"], "--set n: `m` is not defined; a value is made of constants"),
        (["--preset", "larg"], "`main` has no preset `larg`; did you mean `large`?"),
        (["--timeout", "0"], "invalid value for '--timeout': 0.0 is not in the range x>0"),
        (["--iters", "-1"], "invalid value for '--iters': -1 is not in the range x>=0"),
        (["--warmup", "some"], "invalid value for '--warmup': 'some' is not a valid integer range"),
        (["--seed", "x"], "invalid value for '--seed': 'x' is not a valid integer"),
        (["--nnodes", "1:3"], "--nnodes 1:3: a pattern is proven for one world, so its ranks …"),
        (["--nnodes", "3"], "4 ranks do not spread evenly over 3 nodes; give --nproc-per-node"),
        (["--node-rank", "1"], "--node-rank 1: must be from 0 to 0"),
        (["--rdzv-backend", "etcd"], "--rdzv-backend etcd: write static or c10d"),
        (["--rdzv-conf", "fast"], "--rdzv-conf fast: write KEY=VALUE,KEY=VALUE"),
        (["--standalone", "--nnodes=2"], "--standalone is for one node, but --nnodes is 2"),
        (["--extern", "work"], "--extern work: write NAME=MODULE:FUNCTION, as in …"),
        (
            ["--extern", "wrk=functions:scale"],
            "--extern wrk=functions:scale: `main` has no extern `wrk`; did you mean `work`?",
        ),
        (
            ["--extern", "work=nowhere:scale"],
            "--extern work=nowhere:scale: there is no Python module `nowhere` here",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(called: Any, argv: list[str], message: str) -> None:
    code, out, err = called("sum.cl", *argv)
    lines = err.splitlines()
    assert (code, out) == (2, "")
    start, more, _ = f"error: {message}".partition("…")
    assert lines[0].startswith(start) if more else lines[0] == start
    assert lines[1:] in ([], ["try `commlang run --help`"])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--backend", "smoke"], "unknown backend 'smoke'; write gloo, nccl, mpi or auto"),
        (["--device", "toaster"], "unknown device 'toaster'; write cpu, cuda or cuda:<index>"),
        (
            ["--extern", "work=functions:scal"],
            "--extern: cannot load functions:scal: module 'functions' has no attribute 'scal'",
        ),
        (["--extern", "work=functions:number"], "--extern: functions:number is not callable"),
    ],
)
def test_mistakes_that_ranks_find_are_told_once(
    folder: Path, argv: list[str], message: str
) -> None:
    done = run(folder, "sum.cl", *argv)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {message}\n")


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="says what a machine without CUDA says")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--backend", "nccl"], "is built without nccl. Install a CUDA build of torch"),
        (["--device", "cuda"], "local rank 3 needs cuda:3, but torch sees 0 CUDA devices"),
    ],
)
def test_what_this_machine_lacks_is_told_before_ranks_start(
    called: Any, argv: list[str], message: str
) -> None:
    code, out, err = called("sum.cl", *argv)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert "rank 0" not in line


def test_a_file_that_leaves_open_which_pattern(folder: Path) -> None:
    (folder / "two.cl").write_text("pattern a():\n    barrier()\n\npattern b():\n    barrier()\n")
    done = run(folder, "two.cl")
    assert (done.returncode, done.stderr) == (
        2,
        "error: two.cl has several patterns: write two.cl:a or two.cl:b\n",
    )
    done = run(folder, "two.cl:b", "--nproc-per-node=2", "--iters=1")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "b")


def test_a_deadlock_is_refused_without_starting_anything(folder: Path) -> None:
    code = (
        "import sys; from commlang.cli import main; code = main(['run', 'ring.cl']); "
        "print(code, sorted({'torch', 'pydantic', 'networkx'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE_S,
        check=True,
    )
    assert done.stdout == "1 []\n"
    assert done.stderr.startswith("error[CL201]: deadlock: 4 ranks wait for one another\n")
    waits = re.findall(r"rank (\d) waits at 2:5 in .* for rank (\d) to reach 3:5", done.stderr)
    assert waits == [("0", "1"), ("1", "2"), ("2", "3"), ("3", "0")]


@pytest.mark.slow  # by default, docs/running.md shows one that is run
def test_torchrun_runs_on_the_ranks_that_are_there(folder: Path) -> None:
    done = run(folder, "sum.cl", "--iters=2", under=("--nproc-per-node=2",))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all_reduce(x)") == 1
    assert "  2 ranks on gloo, cpu, 1 host" in done.stdout
    assert done.stdout.endswith("holds on every rank\n")


def as_torchrun(folder: Path, ranks: int, *argv: str) -> list[tuple[int, str, str]]:
    """Ranks with the environment that torchrun gives them, less torchrun."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    world = place | {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    return finish(
        *(
            Warm(
                ["run", *argv],
                folder,
                os.environ | {"COLUMNS": "200"} | world | {"RANK": rank, "LOCAL_RANK": rank},
            )
            for rank in map(str, range(ranks))
        )
    )


def test_contract_that_does_not_hold_under_torchrun(folder: Path) -> None:
    first, second = as_torchrun(folder, 2, "wrong.cl", "--iters=0", "--json")
    report = RunReport.model_validate_json(first[1])
    assert [failure.rank for failure in report.contracts[0].failures] == [0, 1]
    # Of our own ranks there is nothing to say: torchrun says that a rank returned 1.
    assert (first[0], first[2], second) == (1, "", (1, "", ""))


@pytest.mark.parametrize("local_rank", [0, 1])
def test_the_first_rank_of_a_node_says_a_refusal_at_once_and_the_others_later(
    called: Any, monkeypatch: pytest.MonkeyPatch, local_rank: int
) -> None:
    place = {"RANK": str(local_rank), "LOCAL_RANK": str(local_rank), "WORLD_SIZE": "3"}
    for name, value in {**place, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    slept: list[float] = []
    monkeypatch.setattr("commlang.cli.run.time.sleep", slept.append)
    code, out, err = called("ring.cl")
    assert (code, out) == (1, "")
    assert err.count("error[CL201]: deadlock: 3 ranks wait for one another") == 1
    assert slept == [2.0] * local_rank


@pytest.mark.slow
def test_refusal_is_said_once_under_torchrun(folder: Path) -> None:
    done = run(folder, "ring.cl", under=("--nproc-per-node=3",))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("error[CL201]: deadlock: 3 ranks wait for one another") == 1
    done = run(folder, "recursive_doubling_all_reduce", under=("--nproc-per-node=3",))
    assert done.returncode == 1
    assert done.stderr.count("error[CL124]: required: every rank needs a partner") == 1


def test_spawned_ranks_and_a_pattern_from_standard_input(folder: Path) -> None:
    pattern = SUM.replace("    work(x, 1)\n", "")
    argv = ("-", "--start-method=spawn", "--nproc-per-node=2", "--iters=1", "--json")
    done = run(folder, *argv, stdin=pattern)
    assert (done.returncode, done.stderr) == (0, "")
    report = RunReport.model_validate_json(done.stdout)
    assert (report.ok, report.world, report.path) == (True, 2, "<stdin>")
