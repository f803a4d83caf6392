"""NCCL's dumps, which record messages, states and the ranks of groups; made by hand (nccl.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.explain.nccl import Groups, Recorder, write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Explain = Any


@pytest.fixture
def explain(cli: Callable[..., Any], folder: Path) -> Explain:
    """`explain(recorders, code=1)` gives what is printed, as lines."""

    def call(ranks: Sequence[Recorder], *more: str, code: int = 1) -> list[str]:
        write(folder, ranks)
        result = cli("explain", ".", *more)
        assert (result.err, result.code) == ("", code)
        return result.out.splitlines()

    return call


def of(world: int, groups: Groups | None = None) -> list[Recorder]:
    return [Recorder(rank, world, groups) for rank in range(world)]


def test_a_job_that_is_well(explain: Explain) -> None:
    ranks = of(3)
    for r in ranks:
        r.call("all_reduce").call("_all_gather_base", 4, out=12)
        r.batch(("send", (r.rank + 1) % 3), ("recv", (r.rank - 1) % 3))
    assert explain(ranks, code=0) == [
        "nothing is wrong in the dumps: all calls are alike on their ranks and over",
        "read 3 dumps of 3 ranks: 12 operations of nccl on 1 group",
    ]


def test_a_rank_that_never_came_with_its_frames(explain: Explain) -> None:
    ranks = of(3)
    for r in ranks:
        r.call("all_reduce")
    for r in ranks[::2]:
        r.call("all_reduce", 8, state="started", retired=r.rank == 0)
    assert explain(ranks) == [
        "rank 1 has not issued all_reduce of float32[8] (call 2 on the world); ranks 0, 2 wait",
        "  rank 0 waits (it timed out) at train.py:7 in train",
        "  rank 2 waits at train.py:7 in train",
        "  rank 1 last issued all_reduce of float32[4] (call 1 on the world), which is over at "
        "train.py:7 in train",
        "  rank 1 waits in no recorded call: it is in work of its own, or gone",
        "read 3 dumps of 3 ranks: 5 operations of nccl on 1 group",
    ]


def test_a_recv_without_a_send(explain: Explain) -> None:
    ranks = of(2)
    ranks[0].message("send", 1)
    ranks[1].message("recv", 0).message("recv", 0, state="scheduled")
    assert explain(ranks)[0] == (
        "rank 0 has not issued the send for recv 0->1 of float32[4] (message 2 from rank 0 to 1 on "
        "the world); rank 1 waits"
    )


def test_a_send_without_a_recv_in_a_group(explain: Explain) -> None:
    """Places in a group are told as ranks of the world."""
    groups: Groups = {"1": ("tp", [1, 2])}
    ranks = of(3, groups)
    ranks[2].message("send", 1, group="1", state="started")
    for r in (ranks[0], ranks[2]):
        r.call("barrier", state="scheduled")
    lines = explain(ranks)
    assert lines[0] == (
        "rank 1 has not issued barrier of float32[4] (call 1 on the world); ranks 0, 2 wait"
    )
    assert any("message 1 from rank 2 to 1 on group 1 (tp)" in line for line in lines)


def test_messages_that_wait_in_a_circle(explain: Explain) -> None:
    ranks = of(3)
    for r in ranks:
        r.message("send", (r.rank + 1) % 3, state="scheduled")
    lines = explain(ranks)
    assert lines[0] == "ranks 0 to 2 wait for one another, each in another call"
    assert (
        "  rank 0 waits for rank 1 in send 0->1 of float32[4] (message 1 from rank 0 to 1 on the "
        "world) at train.py:7 in train"
    ) in lines


def test_a_message_of_another_size(explain: Explain) -> None:
    ranks = of(2)
    ranks[0].message("send", 1, 8, state="started")
    ranks[1].message("recv", 0, 4, state="started")
    assert explain(ranks)[0] == (
        "rank 0 had float32[8], rank 1 had float32[4] in a message (message 1 from rank 0 to 1 on "
        "the world), and the dumps do not tell which is meant"
    )


def test_a_batch_takes_the_state_of_its_end(explain: Explain) -> None:
    """Entries of a batch stay `scheduled` for ever; only its last says whether it is over."""
    ranks = of(2)
    ranks[0].batch(("send", 1), ("recv", 1)).batch(("send", 1), state="started")
    ranks[1].batch(("send", 0), ("recv", 0))
    lines = explain(ranks)
    assert lines[0] == (
        "rank 1 has not issued the recv for send 0->1 of float32[4] (message 2 from rank 0 to 1 on "
        "the world); rank 0 waits"
    )
    assert lines[-1].startswith("read 2 dumps of 2 ranks: 5 operations")


def test_groups_made_in_different_orders(explain: Explain) -> None:
    ranks = [
        Recorder(0, 3, {"1": ("undefined", [0, 1])}).call("all_reduce", group="1", state="started"),
        Recorder(1, 3, {"1": ("undefined", [1, 2])}).call("all_reduce", group="1", state="started"),
        Recorder(2, 3, {"1": ("undefined", [1, 2])}).call("all_reduce", group="1", state="started"),
    ]
    assert explain(ranks)[:3] == [
        "group 1 is not one group: ranks made their groups in different orders",
        "  on rank 0 it is ranks 0, 1",
        "  on ranks 1, 2 it is ranks 1, 2",
    ]


def test_groups_that_were_split_off_may_share_a_name(explain: Explain) -> None:
    ranks = [
        Recorder(r, 4, {"1": ("half", [0, 1] if r < 2 else [2, 3])}).call("all_reduce", group="1")
        for r in range(4)
    ]
    assert explain(ranks, code=0)[-1] == "read 4 dumps of 4 ranks: 4 operations of nccl on 3 groups"


def test_different_orders_of_calls_on_two_groups(explain: Explain) -> None:
    ranks = of(2, {"1": ("tp", [0, 1])})
    ranks[0].call("all_reduce", state="started")
    ranks[1].call("all_reduce", group="1", state="started")
    lines = explain(ranks)
    assert lines[0] == "ranks 0, 1 wait for one another, each in another call"
    assert lines[3] == (
        "  ranks issue what they share in different orders; give all of them one order"
    )


def test_dumps_of_different_moments(explain: Explain) -> None:
    """An all_reduce ends nowhere before all have come: this is no rank that has not."""
    ranks = of(3)
    for r in ranks:
        r.call("all_reduce")
    for r in ranks[:2]:
        r.call("all_reduce")
    assert explain(ranks)[0] == (
        "the dumps are of different moments: all_reduce of float32[4] (call 2 on the world) has "
        "ended on ranks 0, 1, which takes all of its ranks, and in the dump of rank 2 it is not "
        "issued"
    )


def test_a_broadcast_ends_early_at_its_root(explain: Explain) -> None:
    ranks = of(3)
    ranks[0].call("broadcast")
    ranks[1].call("broadcast", state="started")
    assert explain(ranks)[0].startswith("rank 2 has not issued broadcast")


def test_a_call_that_all_have_issued_alike(explain: Explain) -> None:
    ranks = of(2)
    ranks[0].call("broadcast", state="started")
    ranks[1].call("broadcast", state="started")
    assert explain(ranks)[:4] == [
        "all ranks issued broadcast of float32[4] (call 1 on the world) alike, but on ranks 0, 1 "
        "it has not ended",
        "  ranks 0, 1 wait at train.py:7 in train",
        "  it was still running, or a process is stopped, or a connection is broken",
        "  dumps do not record the root: ranks that give different ones hang so",
    ]


def test_a_rank_that_runs_ahead_of_a_stuck_call_accuses_nobody(explain: Explain) -> None:
    """Rank 1's host waits for call 1, as it may; rank 0 has issued call 2 meanwhile."""
    ranks = of(2)
    for r in ranks:
        r.call("all_reduce", state="started")
    ranks[0].call("all_gather", state="scheduled")
    lines = explain(ranks)
    assert lines[0].startswith("all ranks issued all_reduce of float32[4] (call 1 on the world)")
    assert not any(line.startswith("also: rank 1") for line in lines)


def test_a_call_left_out(explain: Explain) -> None:
    ranks = of(3)
    for r in ranks:
        r.call("all_reduce")
        if r.rank != 1:
            r.call("all_reduce", 8, state="started")
        r.call("_all_gather_base", 4, out=12, state="scheduled")
    lines = explain(ranks)
    assert lines[0] == (
        "rank 1 called _all_gather_base where ranks 0, 2 called all_reduce (call 2 on the world)"
    )
    assert (
        "  rank 0 issued what rank 1 did one call later: rank 1 left out all_reduce of float32[8], "
        "or rank 0 has it too much"
    ) in lines


def test_shapes_may_differ_and_splits_too(explain: Explain) -> None:
    ranks = of(2)
    for r, (sent, received) in zip(ranks, ((6, 4), (2, 4)), strict=True):
        r.call("all_to_all", sent, out=received)
    assert explain(ranks, code=0)[0].startswith("nothing is wrong")
    ranks[0].call("all_to_all", 6, out=4, state="started")
    ranks[1].call("all_to_all", 2, out=2, state="started")
    assert explain(ranks)[0] == (
        "rank 0 gave float32[6] -> [4], rank 1 gave float32[2] to all_to_all (call 2 on the "
        "world), and the dumps do not tell which is meant"
    )


def test_a_lost_beginning_accuses_nobody(explain: Explain) -> None:
    """Rank 1's buffer was overwritten by another group's calls."""
    groups: Groups = {"1": ("tp", [1])}
    ranks = [Recorder(0, 2).call("all_reduce", state="started"), Recorder(1, 2, groups)]
    for _ in range(4):
        ranks[1].call("all_reduce", group="1")
    del ranks[1].entries[:2]
    lines = explain(ranks)
    assert lines[0] == (
        "rank 0 waits in all_reduce of float32[4] (call 1 on the world), and of rank 1 the dump "
        "has lost whether it issued it"
    )


def test_messages_in_the_lines_of_a_pattern(explain: Explain, folder: Path) -> None:
    (folder / "step.cl").write_text(
        "pattern step(x: float32[4]):\n"
        "    send(x, dst=ranks.next)\n"
        "    recv(x, src=ranks.prev)\n"
        "    all_reduce(x)\n"
    )
    ranks = of(2)
    ranks[0].message("send", 1).message("recv", 1, state="scheduled")
    ranks[1].message("send", 0)
    ranks[1].entries.clear()
    ranks[1].message("recv", 0)
    lines = explain(ranks, "step.cl")
    assert lines[0] == "rank 1 has not issued `send(x, dst=ranks.next)` (step.cl:2:5); rank 0 waits"


def test_pieces_that_a_schedule_made(explain: Explain, folder: Path) -> None:
    (folder / "chain.cl").write_text(
        "pattern chain(x: float32[1Mi]):\n"
        "    if rank > 0:\n"
        "        recv(x, src=rank - 1)\n"
        "    if rank < world - 1:\n"
        "        send(x, dst=rank + 1)\n"
    )
    half = 1 << 19
    ranks = of(3)
    ranks[0].message("send", 1, half).message("send", 1, half, state="started")
    ranks[1].message("recv", 0, half)
    ranks[2].message("recv", 1, half, state="scheduled")
    lines = explain(ranks, "chain.cl", "--world", "3")
    assert lines[0] == (
        "rank 1 has not issued `recv(x, src=rank - 1)` (chain.cl:3:9), piece 2 of 2; "
        "ranks 0, 2 wait"
    )
    assert (
        "  rank 1 has next in the pattern: `recv(x, src=rank - 1)` (chain.cl:3:9), piece 2 of 2"
    ) in lines


def test_other_statements_that_a_schedule_made_one(explain: Explain, folder: Path) -> None:
    (folder / "step.cl").write_text(
        "pattern step(x: float32[4], y: float32[6]):\n    all_reduce(x)\n    all_reduce(y)\n"
    )
    ranks = of(2)
    for r in ranks:
        r.call("all_reduce", 10)
    ranks[0].call("all_reduce", 10, state="started")
    lines = explain(ranks, "step.cl")
    assert lines[0] == (
        "rank 1 has not issued `all_reduce(x)` (step.cl:2:5) to `all_reduce(y)` (step.cl:3:5), "
        "2 as one; rank 0 waits"
    )
    ranks[1].call("all_reduce", 4).call("all_reduce", 6)
    assert "rank 1 gave float32[4]" in explain(ranks, "step.cl")[0]


def test_one_prefix_and_one_rank_each(cli: Callable[..., Any], folder: Path) -> None:
    write(folder, of(2))
    (folder / "other_0").write_bytes(b"")
    told = cli("explain", ".")
    assert told.code == 2
    assert "has files of several kinds (nccl_trace_rank_N, other_N); name the dumps' files" in (
        told.err
    )
    told = cli("explain", "nccl_trace_rank_0", "./nccl_trace_rank_0")
    assert "nccl_trace_rank_0 and ./nccl_trace_rank_0 are both of rank 0" in told.err


@pytest.mark.slow
def test_torch_reads_them_too(folder: Path) -> None:
    """That torch's own analyser takes these for NCCL's dumps, and finds the same rank."""
    ranks = of(2)
    for r in ranks:
        r.call("all_reduce")
    ranks[0].call("all_reduce", 8, state="started")
    write(folder, ranks)
    command = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert "Not all ranks joining collective, sequence number: 2" in done.stdout + done.stderr
    assert "missing ranks: {1}" in done.stdout + done.stderr


def test_json_names_the_kinds(cli: Callable[..., Any], folder: Path) -> None:
    ranks = of(2)
    ranks[0].message("send", 1, state="scheduled")
    write(folder, ranks)
    (finding,) = json.loads(cli("explain", ".", "--json").out)["findings"]
    assert (finding["kind"], finding["ranks"], finding["waiting"]) == ("missing", [1], [0])
