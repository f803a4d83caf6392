"""The trace of a real run of four gloo ranks, event by event, and what is read back from it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commlang.cli import main
from commlang.errors import UsageError
from commlang.operations import Kind
from commlang.program import build
from commlang.program.matching import match_collectives, match_messages
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.trace import read_trace

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.trace import Trace

ROOT = Path(__file__).parents[2]
RUN = (sys.executable, "-m", "commlang", "run")
RUNS = 3
TEXT = """\
pattern mixed(x: float32[n], y: float32[n], z: float32[n], n = 1Ki):
    work = async all_reduce(x)
    scale(y, 2)
    wait(work)
    parallel:
        send(y, dst=ranks.next)
        recv(z, src=ranks.prev)
    for i in range(2):
        broadcast(y, src=i)
    if rank == 0:
        send(y, dst=1)
    if rank == 1:
        recv(y, src=0)
"""
Event = dict[str, Any]


def program(text: str = TEXT, world: int = 4, **values: int) -> Program:
    module = load_module(Source(text, "mixed.cl"))
    return build(module.symbols["mixed"], world, values)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of one run, which all tests look at."""
    folder = tmp_path_factory.mktemp("trace")
    (folder / "mixed.cl").write_text(TEXT)
    done = subprocess.run(
        [*RUN, "mixed.cl", "--trace", "out.json", "--iters", str(RUNS), "--backend", "gloo"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(p.name for p in folder.iterdir()) == ["mixed.cl", "out.json"]
    return folder / "out.json"


@pytest.fixture(scope="module")
def events(file: Path) -> list[Event]:
    return json.loads(file.read_text())["traceEvents"]


@pytest.fixture(scope="module")
def trace(file: Path) -> Trace:
    return read_trace(file)


def of(events: list[Event], phase: str, category: str | None = None) -> list[Event]:
    return [e for e in events if e["ph"] == phase and category in (None, e.get("cat"))]


def test_every_rank_is_a_process_with_its_host(events: list[Event]) -> None:
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {rank: f"rank {rank} ({os.uname().nodename})" for rank in range(4)}
    assert {e["pid"] for e in events} == {0, 1, 2, 3}


def test_each_action_is_a_slice_with_its_statement_and_place(events: list[Event]) -> None:
    slices = [e for e in of(events, "X", "action") if (e["pid"], e["args"]["iteration"]) == (0, 1)]
    told = [(e["name"], e["args"]["where"], e["args"]["act"], e["args"]["bytes"]) for e in slices]
    assert told == [
        ("all_reduce(x)", "mixed.cl:2:18", "start", 4096),
        ("scale(y, 2)", "mixed.cl:3:5", "run", 4096),
        ("send(y, dst=ranks.next) | recv(z, src=ranks.prev)", "mixed.cl:6:9", "batch", 4096),
        ("broadcast(y, src=i)", "mixed.cl:9:9", "run", 4096),
        ("broadcast(y, src=i)", "mixed.cl:9:9", "run", 4096),
        ("send(y, dst=1)", "mixed.cl:11:9", "start", 4096),
        ("end of all_reduce(x)", "mixed.cl:2:18", "join", 0),
    ]
    assert slices[2]["args"]["peers"] == [1, 3]
    assert [e["args"].get("group") for e in slices[:3]] == ["world", None, "world"]
    assert slices[1]["args"]["operation"] == "scale"


def test_slices_of_a_rank_follow_one_another_within_their_run(events: list[Event]) -> None:
    for rank in range(4):
        runs = [e for e in of(events, "X", "run") if e["pid"] == rank]
        assert [e["name"] for e in runs] == [f"iteration {run}" for run in range(RUNS)]
        for number, run in enumerate(runs):
            mine = [
                (round(e["ts"] * 1e3), round((e["ts"] + e["dur"]) * 1e3))
                for e in of(events, "X", "action")
                if (e["pid"], e["args"]["iteration"]) == (rank, number)
            ]
            whole = round(run["ts"] * 1e3), round((run["ts"] + run["dur"]) * 1e3)
            assert (mine[0][0], mine[-1][1]) == whole
            assert all(end == start for (_, end), (start, _) in itertools.pairwise(mine))
            assert all(start < end for start, end in mine)


def test_messages_and_collectives_are_arrows_between_the_slices_that_meet(
    events: list[Event], trace: Trace
) -> None:
    ran = trace.program(program())
    sends, recvs = of(events, "s", "message"), of(events, "f", "message")
    met = match_messages(ran)
    pairs = zip(ran.rank[met.send].tolist(), ran.rank[met.recv].tolist(), strict=True)
    ends = {e["id"]: e for e in recvs}
    arrows = [(e["pid"], ends[e["id"]]["pid"]) for e in sends]
    assert Counter(arrows) == Counter(list(pairs) * RUNS)
    assert len({e["id"] for e in sends}) == len(sends) == len(recvs) == 5 * RUNS
    assert all(e["ts"] <= ends[e["id"]]["ts"] for e in sends), "nothing comes before it was sent"
    assert {e["bp"] for e in recvs} == {"e"}

    calls = [e for phase in "stf" for e in of(events, phase, "collective")]
    assert len(calls) == RUNS * len(match_collectives(ran).row) == RUNS * 12
    by_id: dict[int, list[Event]] = {}
    for event in calls:
        by_id.setdefault(event["id"], []).append(event)
    for met_at in by_id.values():
        ordered = sorted(met_at, key=lambda e: (e["ts"], "stf".index(e["ph"])))
        assert [e["ph"] for e in ordered] == ["s", "t", "t", "f"]
        assert {e["pid"] for e in met_at} == {0, 1, 2, 3}
    assert Counter(e["name"] for e in calls) == {"all_reduce": 4 * RUNS, "broadcast": 8 * RUNS}


def test_every_arrow_ends_in_a_slice(events: list[Event]) -> None:
    spans: dict[int, list[tuple[float, float]]] = {rank: [] for rank in range(4)}
    for event in of(events, "X", "action"):
        spans[event["pid"]].append((event["ts"], event["ts"] + event["dur"]))
    for event in (e for phase in "stf" for e in of(events, phase)):
        at = event["ts"]
        assert any(start <= at < end for start, end in spans[event["pid"]]), event


def test_asynchronous_operations_last_from_start_to_join(events: list[Event]) -> None:
    begun, ended = of(events, "b", "async"), of(events, "e", "async")
    assert [(e["id"], e["pid"], e["name"]) for e in begun] == [
        (e["id"], e["pid"], e["name"]) for e in ended
    ]
    assert {e["pid"] for e in begun if e["name"] == "all_reduce(x)"} == {0, 1, 2, 3}
    joins = {
        (e["pid"], round((e["ts"] + e["dur"]) * 1e3))
        for e in of(events, "X", "action")
        if e["args"]["act"] == "join"
    }
    assert {(e["pid"], round(e["ts"] * 1e3)) for e in ended} <= joins


def test_the_header_says_what_ran_and_how_clocks_were_aligned(trace: Trace) -> None:
    header = trace.header
    assert (header.pattern, header.world, header.parameters) == ("mixed", 4, {"n": "1Ki"})
    assert (header.backend, header.device, header.runs, header.kept) == ("gloo", "cpu", 3, 3)
    assert [(c.ranks, c.offset, c.error) for c in header.clocks] == [([0, 1, 2, 3], 0.0, 0.0)]
    assert "perf_counter" in header.clock_method
    assert header.cut is None


def test_times_of_the_rows_are_read_back(trace: Trace, events: list[Event]) -> None:
    written = program()
    ran = trace.program(written)
    assert ran is not written, "the overlap pass was applied"
    for run in range(RUNS):
        timing = trace.timing(ran, run)
        assert (timing.start <= timing.end).all()
        assert timing.start.min() == 0
        assert timing.end.max() == pytest.approx(trace.totals[run], abs=1e-9)
    assert trace.totals[trace.middle] == sorted(trace.totals)[1]
    timing, plain = trace.timing(ran), trace.timing(written)
    assert timing.origin == "measured"
    known = np.flatnonzero(written.kind != Kind.WAIT)
    assert np.isnan(plain.start[written.kind == Kind.WAIT]).all()
    for kind in (Kind.ALL_REDUCE, Kind.BROADCAST, Kind.SEND, Kind.RECV, Kind.SCALE):
        ours, theirs = written.kind == kind, ran.kind == kind
        assert sorted(plain.start[ours]) == sorted(timing.start[theirs])
        assert sorted(plain.end[ours]) == sorted(timing.end[theirs])
    assert (plain.start[known] <= plain.end[known]).all()


def test_another_pattern_world_or_text_is_refused(trace: Trace) -> None:
    with pytest.raises(UsageError, match="is of another world: 4, not 3"):
        trace.timing(program(world=3))
    with pytest.raises(UsageError, match="is of other parameters: n = 1Ki, not n = 2Ki"):
        trace.timing(program(n=2048))
    with pytest.raises(UsageError, match="written of another text of"):
        trace.timing(program(TEXT.replace("scale(y, 2)", "scale(y, 3)")))
    with pytest.raises(UsageError, match="holds runs 0 to 2, not 3"):
        trace.timing(program(), 3)


def test_what_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for argv, said in (
        (("none/out.json",), "cannot write none/out.json: there is no folder none"),
        (("",), "cannot write : it is a folder"),
        (("out.json", "--dry-run"), "--trace out.json: with --dry-run nothing runs"),
        (("out.json", "--iters", "0"), "--trace out.json: --iters 0 times no run"),
    ):
        assert main(["run", "all_reduce", "--trace", *argv]) == 2
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
