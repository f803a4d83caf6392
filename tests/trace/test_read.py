"""What is no trace, or a damaged one, is refused with a message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commlang.errors import UsageError
from commlang.plan import Plan, make_plan
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.trace import Clock, RankTrace, read_trace, runs_to_keep, write_trace
from commlang.trace import write as writing

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
pattern pair(x: float32[n], n = 8):
    for i in range(4):
        if rank == 0:
            send(x, dst=1)
        if rank == 1:
            recv(x, src=0)
"""


@pytest.fixture
def plan() -> Plan:
    module = load_module(Source(TEXT, "pair.cl"))
    return make_plan(module.symbols["pair"], 2, schedule="program")


def marks(plan: Plan, runs: int, start: float = 5.0) -> Any:
    """An action each millisecond."""
    actions = len(plan.actions(0))
    return start + np.arange(actions + 1) * 1e-3 + np.arange(runs)[:, None]


def written(path: Path, plan: Plan, late: float = 0.0, clock: Clock | None = None) -> Path:
    ranks = [
        RankTrace(0, "a", marks(plan, 2)),
        RankTrace(1, "b", marks(plan, 2) + late, clock or Clock()),
    ]
    write_trace(str(path), plan, ranks, {}, 7)
    return path


def test_clocks_are_brought_to_that_of_rank_0(tmp_path: Path, plan: Plan) -> None:
    ahead = Clock((15.0, 16.0), (10.0, 10.0), (1e-6, 2e-6))
    trace = read_trace(written(tmp_path / "t.json", plan, 10.0, ahead))
    timing = trace.timing(plan.program(), 1)
    assert timing.start.tolist() == pytest.approx([0, 1e-3, 2e-3, 3e-3] * 2, abs=2e-9)
    facts = [(c.ranks, c.offset, c.error) for c in trace.header.clocks]
    assert facts == [([0], 0.0, 0.0), ([1], 10.0, 2e-6)]
    assert (trace.header.runs, trace.header.kept) == (7, 2)


def test_drift_between_two_looks_is_even() -> None:
    clock = Clock((0.0, 10.0), (0.0, 1.0), (0.1, 0.2))
    assert clock.to_first(np.array([-1.0, 5.0, 10.0, 11.0])).tolist() == [-1.0, 4.5, 9.0, 10.0]
    assert clock.bound == 0.2


def test_a_large_trace_is_cut_and_says_so(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_ROWS", 4)
    assert (runs_to_keep(8, 5), runs_to_keep(2, 5), runs_to_keep(1, 3)) == (1, 2, 3)
    trace = read_trace(written(tmp_path / "t.json", plan))
    assert trace.header.cut == "only the first 2 actions of each rank"
    end = trace.timing(plan.program()).end
    assert np.isnan(end).tolist() == [False, False, True, True] * 2
    assert end[:2].tolist() == pytest.approx([1e-3, 2e-3], abs=2e-9)


def test_a_trace_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, plan: Plan) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")
    broken = [RankTrace(0, "a", marks(plan, 1)), RankTrace(1, "b", marks(plan, 1)[:, :3])]
    with pytest.raises(ValueError, match="broadcast"):
        write_trace(str(path), plan, broken, {}, 1)
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file: Invalid JSON"),
        (b"\x00\xff", "the file: Invalid JSON"),
        (b"[" * 100_000, "the file: Invalid JSON"),
        (b"{}", "otherData: Field required"),
        (b'{"traceEvents": [], "otherData": {"version": 2}}', "otherData.version"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not a trace of `commlang run --trace`") as caught:
        read_trace(path)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match=r"cannot read none\.json: No such file"):
        read_trace("none.json")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": [99]}, "is damaged: rank 0 has no event 99"),
        ({"rows": [4]}, "is damaged: rank 0 has no event 4"),
        ({"rows": [-1]}, "is not a trace"),
        ({"act": "jump"}, "is not a trace"),
        ({"iteration": 10**30}, "is not a trace"),
    ],
)
def test_a_damaged_trace_is_refused(
    tmp_path: Path, plan: Plan, change: dict[str, Any], said: str
) -> None:
    path = written(tmp_path / "t.json", plan)
    data = json.loads(path.read_text())
    next(e for e in data["traceEvents"] if e.get("cat") == "action")["args"].update(change)
    path.write_text(json.dumps(data))
    with pytest.raises(UsageError, match=said):
        read_trace(path).timing(plan.program(), 0)


@pytest.mark.parametrize("kept", [10**12, 1 << 63])
def test_a_header_of_runs_that_are_not_there_is_refused(
    tmp_path: Path, plan: Plan, kept: int
) -> None:
    path = written(tmp_path / "t.json", plan)
    path.write_text(path.read_text().replace('"kept": 2', f'"kept": {kept}'))
    with pytest.raises(UsageError, match=r"is damaged|is not a trace"):
        read_trace(path)
    path.write_text(path.read_text().replace(f'"kept": {kept}', '"kept": 5'))
    assert read_trace(path).middle == 0


def test_pieces_of_an_operation_that_was_split_are_one(tmp_path: Path) -> None:
    text = "pattern relay(x: float32[n], n = 4Mi):\n    x @ 0 -> x @ 1\n    x @ 1 -> x @ 2\n"
    definition = load_module(Source(text, "relay.cl")).symbols["relay"]
    plan = make_plan(definition, 3)
    assert plan.chunks, "large enough to be split"
    ran, runs = plan.program(), []
    for rank in range(3):
        actions = len(plan.actions(rank, ran))
        runs.append(RankTrace(rank, "a", 1.0 + np.arange(actions + 1)[None] * 1e-3))
    write_trace(str(tmp_path / "t.json"), plan, runs, {}, 1)
    program = build(definition, 3)
    timing = read_trace(tmp_path / "t.json").timing(program)
    assert len(program) == 4 < len(ran)
    pieces = read_trace(tmp_path / "t.json").timing(ran)
    for rank in range(3):
        mine, theirs = program.rank == rank, (ran.rank == rank) & ~np.isnan(pieces.end)
        talk = theirs & ran.is_message
        assert timing.start[mine].min() == pieces.start[talk].min()
        assert timing.end[mine].max() == pieces.end[talk].max()
