"""The shared board, and what a set of reports is taken to mean."""

from __future__ import annotations

import multiprocessing
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from commlang.errors import CommlangError
from commlang.execute.diagnosis import Narrator, WaitGraph, explain, ranks_text, waiting
from commlang.execute.launch import Ending, board_in
from commlang.execute.progress import DONE, NOT_STARTED, Board
from commlang.execute.report import (
    NOTES_FILE,
    RankReport,
    RunFailed,
    State,
    failure_fields,
    read_reports,
    write_reports,
)

if TYPE_CHECKING:
    from pathlib import Path


def _write_and_die(path: Path) -> None:
    board = Board.open(path)
    board.start(1, 7)
    board.cell(1)[0] = 42


def test_a_board_is_seen_by_all_processes_and_shows_who_is_gone(tmp_path: Path) -> None:
    board = Board.create(tmp_path / "board", [6, 7])
    board.start(0, 6)
    assert [r.position for r in board.reports()] == [NOT_STARTED, NOT_STARTED]
    assert [r.state for r in board.reports()] == [State.RUNNING, State.ABSENT]
    child = multiprocessing.get_context("spawn").Process(
        target=_write_and_die, args=(tmp_path / "board",)
    )
    child.start()
    child.join(60)
    mine, other = board.reports()
    assert (mine.rank, mine.state) == (6, State.RUNNING)
    assert (other.rank, other.position, other.state) == (7, 42, State.VANISHED)
    assert board.report(1, look=False).state is State.RUNNING


def test_a_dead_process_is_gone_before_it_is_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board.create(tmp_path / "board", [0, 1])
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", ":"], {})
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: pid)
        board.start(1, 1)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert board.vanished(1)
    os.waitpid(pid, 0)
    assert board.vanished(1)


def test_an_end_carries_its_failure_and_long_texts_are_cut(tmp_path: Path) -> None:
    board = Board.create(tmp_path / "board", [0])
    board.start(0, 0)
    message = "first " + "\x01é" * 9000 + " last"
    board.end(0, State.FAILED, {"message": message, "traceback": message, "known_code": 2})
    report = Board.open(tmp_path / "board").report(0)
    assert (report.state, report.known_code) == (State.FAILED, 2)
    assert report.message.startswith("first ")
    assert report.message.endswith(" last")
    assert len(report.message) < len(message)
    board.end(0, State.DONE)
    assert board.report(0).message == ""


def test_failure_fields() -> None:
    lost = failure_fields(RuntimeError("Connection closed by peer [127.0.0.1]:5"))
    assert lost["consequence"]
    own = failure_fields(ValueError("Connection closed by peer"))
    assert own["message"] == "ValueError: Connection closed by peer"
    assert not own["consequence"]
    refused = CommlangError("a.cl:3 is wrong")
    refused.exit_code = 2
    assert failure_fields(refused) == {"message": "a.cl:3 is wrong", "known_code": 2}


def test_reports_survive_a_file(tmp_path: Path) -> None:
    reports = [RankReport(0, 3, State.FAILED, message="a\nb"), RankReport(1, DONE, State.DONE)]
    write_reports(tmp_path / "notes", reports)
    assert read_reports(tmp_path / "notes") == reports
    assert read_reports(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("state", "consequence", "blamed"),
    [("FAILED", False, 0), ("FAILED", True, 1), ("DONE", False, 1)],
)
def test_ranks_that_a_launcher_ended_for_a_failure_are_not_its_cause(
    tmp_path: Path, state: str, consequence: bool, blamed: int
) -> None:
    board = Board.create(tmp_path / "board", [0, 1])
    board.start(0, 0)
    board.start(1, 1)
    failure = {"message": "unknown device", "known_code": 2, "consequence": consequence}
    board.end(0, State[state], failure if state == "FAILED" else None)
    write_reports(tmp_path / NOTES_FILE, [RankReport(1, NOT_STARTED, State.VANISHED)])
    failed = Ending(board, tmp_path, Narrator()).failed({0: 2})
    assert failed.causes == (blamed,)
    told = ["rank 0 failed before joining the group: unknown device", "rank 1 died before joining"]
    assert str(failed).startswith(told[blamed])


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([3], "rank 3"), ([1, 0], "ranks 0, 1"), ([5, 2, 3, 4, 0], "ranks 0, 2-5")],
)
def test_ranks_text(ranks: list[int], text: str) -> None:
    assert ranks_text(ranks) == text


def _ring(rank: int, position: int) -> list[tuple[int, int]]:
    return [((rank + 1) % 4, position)]


RING = Narrator(lambda rank, position: f"r.cl:{position} op of {rank}", _ring)


def _stuck(*positions: int, state: State = State.TIMED_OUT) -> list[RankReport]:
    return [RankReport(r, p, state, idle_s=9.0) for r, p in enumerate(positions)]


def test_who_is_waited_for_is_followed_to_its_root() -> None:
    reports = _stuck(3, 3, 3, 2)
    graph = WaitGraph(reports, RING)
    assert graph.waits_for(2) == [3]
    assert graph.waits_for(1) == []
    assert graph.involved(2) == {2, 3}
    assert graph.roots() == [3]
    text, guilty = explain(reports, RING)
    assert guilty == [3]
    assert text.splitlines()[0] == (
        "rank 3 made no progress for 9 s at r.cl:2 op of 3 and waited for no one"
    )
    assert "  rank 2 waited for rank 3 at r.cl:3 op of 2" in text.splitlines()


def test_ranks_that_wait_in_a_ring_are_all_named() -> None:
    narrator = Narrator(RING.describe, lambda rank, position: [((rank + 1) % 4, position + 1)])
    text, guilty = explain(_stuck(5, 5, 5, 5), narrator)
    assert guilty == [0, 1, 2, 3]
    assert "rank 3 made no progress for 9 s at r.cl:5 op of 3 and waited for rank 0" in text


def test_without_knowledge_of_waits_the_ranks_furthest_behind_are_named() -> None:
    text, guilty = explain(_stuck(4, 3, 4, DONE), Narrator())
    assert guilty == [1]
    assert text.splitlines()[0].startswith("rank 1 made no progress for 9 s at step 3")


def test_a_dead_rank_is_the_cause_and_lost_connections_its_consequences() -> None:
    reports = [
        RankReport(0, 3, State.FAILED, ended_ns=1, message="lost", consequence=True),
        RankReport(1, 2, State.RUNNING, exit_code=-9),
        RankReport(2, NOT_STARTED, State.ABSENT),
    ]
    narrator = Narrator(RING.describe, lambda rank, position: [(1, position)])
    text, guilty = explain(reports, narrator)
    assert guilty == [1]
    assert text.splitlines() == [
        "rank 1 was killed by SIGKILL at r.cl:2 op of 1",
        "  rank 0 waited for rank 1 at r.cl:3 op of 0",
    ]


def test_the_first_own_failure_wins_and_equal_ones_are_told_once() -> None:
    first = RankReport(2, 1, State.FAILED, ended_ns=5, message="bad", known_code=2)
    reports = [
        RankReport(0, 1, State.FAILED, ended_ns=9, message="other"),
        RankReport(1, 1, State.FAILED, ended_ns=1, message="lost", consequence=True),
        first,
        replace(first, rank=3, ended_ns=6),
    ]
    same = Narrator(lambda rank, position: f"r.cl:{position}")
    text, guilty = explain(reports, same)
    assert text.splitlines()[0] == "ranks 2, 3 failed at r.cl:1: bad"
    assert RunFailed(text, reports, guilty).exit_code == 2


def test_a_lost_connection_points_at_the_silent_rank_that_was_waited_for() -> None:
    reports = [
        RankReport(0, 3, State.FAILED, message="lost", consequence=True),
        RankReport(1, 2, State.RUNNING),
        RankReport(2, 3, State.RUNNING),
        RankReport(3, 3, State.STOPPED),
    ]
    text, guilty = explain(reports, RING)
    assert guilty == [1]
    assert text.startswith("rank 1 went silent at r.cl:2 op of 1")


def test_a_long_list_of_ranks_is_cut_short() -> None:
    reports = [RankReport(r, r, State.STOPPED) for r in range(40)]
    reports[0] = replace(reports[0], state=State.FAILED, message="bad")
    lines = explain(reports, Narrator())[0].splitlines()
    assert len(lines) == 12
    assert lines[-1] == "  and 29 more"
    assert len(waiting(reports, Narrator())) == 40


def test_a_process_that_is_stopped_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board.create(tmp_path / "board", [0, 1])
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: pid)
        board.start(1, 1)
    assert board.note_suspended() == []
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED)
    assert board.note_suspended() == [pid]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert [r.suspended for r in board.reports()] == [False, True]


def test_a_stopped_rank_is_at_fault_also_once_it_is_killed() -> None:
    reports = _stuck(3, 3, 3)
    reports[1] = replace(reports[1], state=State.RUNNING, suspended=True, exit_code=-9)
    inside = Narrator(RING.describe, lambda rank, at: (), lambda rank, at: f"r.cl:{at - 1}")
    text, guilty = explain(reports, inside)
    assert guilty == [1]
    assert text.splitlines()[0] == (
        "rank 1 made no progress for 9 s at r.cl:3 op of 1, after r.cl:2, "
        "being stopped (as by SIGSTOP or a debugger)"
    )


def test_a_board_for_which_there_is_no_room_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(CommlangError, match=r"the files of the run in .*: No space left on dev"):
        board_in(tmp_path, 2)
