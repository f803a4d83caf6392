"""Orders that overlap: what starts early, what is waited for late, and what may not move."""

from __future__ import annotations

import numpy as np
import pytest

from commlang.checks import check_program
from commlang.checks.selection import Selection
from commlang.diagnostics import Severity
from commlang.errors import PatternError
from commlang.operations import Kind
from commlang.program import Program, build
from commlang.resolve.modules import load_module
from commlang.schedule import Scheduled, apply, linearise, schedule
from commlang.schedule.overlap import AHEAD
from commlang.source import Source
from commlang.transports import RENDEZVOUS, Backend, NcclInit, Target
from tests.differential.generate import Pattern

HEAD = "pattern f(x: float32[n], y: float32[n], z: float32[n], n = 8):\n"
ORDER = Selection(select=("CL2",), ignore=("CL24",))


def program(body: str, world: int = 2) -> Program:
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    return build(load_module(Source(text)).symbols["f"], world)


def order(body: str, rank: int = 0, world: int = 2) -> list[str]:
    """What a rank's host does once its program overlaps: `start x`, `run copy`, `join x`."""
    found = schedule(program(body, world), RENDEZVOUS, "overlap")
    assert found.passes, found.refused
    return told(found.program, rank)


def told(prog: Program, rank: int) -> list[str]:
    def words(row: int) -> str:
        if prog.site_of(row).kind.is_local or prog.first[row] < 0:
            return prog.site_of(row).name
        return prog.buffer_of(int(prog.operands.buffer[prog.first[row]])).name

    actions = linearise(prog, rank, lambda: prog)
    return [" ".join([a.act.value, *map(words, a.rows)]) for a in actions]


def test_an_operation_is_joined_where_its_data_are_needed() -> None:
    assert order("all_reduce(x)\ncompute(1ms, reads=y)\nx -> z") == [
        "start x",
        "run compute",
        "join x",
        "run copy",
    ]


def test_operations_start_before_local_work_that_is_not_theirs() -> None:
    assert order("compute(1ms, writes=x)\nall_reduce(y)\nall_reduce(x)\nx -> z") == [
        "start y",
        "run compute",
        "run x",
        "run copy",
        "join y",
    ]


def test_communication_starts_in_the_order_of_the_text() -> None:
    body = "all_reduce(x)\nx -> y\nall_reduce(y)\nall_reduce(z)"
    assert order(body) == ["run x", "run copy", "start y", "start z", "join y z"]


def test_waits_of_the_text_are_placed_anew() -> None:
    body = "h = async all_reduce(x)\nwait(h)\ncompute(1ms, reads=y)\nx -> z"
    assert order(body) == ["start x", "run compute", "join x", "run copy"]


def test_what_only_reads_the_same_data_does_not_wait() -> None:
    body = "if rank == 0:\n    send(x, dst=1)\n    x -> y\nelse:\n    recv(x, src=0)\n    x -> y"
    assert order(body, 0) == ["start x", "run copy", "join x"]
    assert order(body, 1) == ["run x", "run copy"]


def test_parts_of_a_tensor_are_told_apart() -> None:
    assert order("all_reduce(x[:4])\nfill(x[4:], 0)\nfill(x[3:5], 1)") == [
        "start x",
        "run fill",
        "join x",
        "run fill",
    ]


def test_turns_of_a_loop_that_share_the_memory_of_a_temp_do_not_overlap() -> None:
    body = (
        "for i in range(2):\n    temp t: like x\n    fill(t, i)\n    all_reduce(t)\n"
        "    t -> x if i else y"
    )
    found = schedule(program(body.replace("x if i else y", "x"), 2), RENDEZVOUS, "overlap").program
    assert told(found, 0) == ["run fill", "run t", "run copy"] * 2


@pytest.mark.parametrize("fence", ["barrier()", "compute(1ms)"])
def test_nothing_passes_what_has_no_data(fence: str) -> None:
    assert order(f"all_reduce(x)\n{fence}\nall_reduce(y)\nfill(z, 0)")[:2] == [
        "run x",
        "run barrier" if fence == "barrier()" else "run compute",
    ]


def test_a_block_stays_whole() -> None:
    body = (
        "all_reduce(z)\nparallel:\n    send(x, dst=ranks.next)\n    recv(y, src=ranks.prev)\ny -> z"
    )
    assert order(body) == ["start z", "batch x y", "join z", "run copy"]


def test_an_operation_starts_ahead_of_so_much_and_no_more() -> None:
    work = "compute(1ms, writes=x)\n"
    assert order(work * AHEAD + "all_reduce(y)")[0] == "start y"
    assert order(work * (AHEAD + 1) + "all_reduce(y)")[1] == "start y"


def test_why_nothing_is_done() -> None:
    nested = "parallel:\n    sequence:\n        send(x, dst=ranks.next)\n        x -> z\n"
    found = schedule(program(nested + "    recv(y, src=ranks.prev)"), RENDEZVOUS, "overlap")
    assert found.passes == ()
    assert found.refused == ("overlap: a `parallel:` has sequences in it",)


def test_what_is_written_is_run_unless_asked_otherwise() -> None:
    prog = program("all_reduce(x)\nfill(y, 0)")
    assert schedule(prog, RENDEZVOUS, "program").program is prog


def test_random_programs_stay_sound_and_keep_their_order() -> None:
    targets = (Target(Backend.GLOO), Target(Backend.NCCL, NcclInit.EAGER))
    changed = by_group = batches = 0
    for seed in range(100):
        written = Pattern(seed)
        try:
            prog = build(load_module(Source(written.text)).symbols["main"], written.world)
        except PatternError:
            continue
        for target in targets:
            if errors(prog, target):
                continue
            found = schedule(prog, target, "overlap")
            changed += bool(found.passes)
            by_group += "overlap by group" in found.passes
            batches += "batch" in found.passes
            if found.passes:
                same_order(prog, found, seed)
                assert not errors(found.program, target)
            objections = [why for why in found.refused if why.startswith("overlap: the check")]
            assert all("are in flight together on rank" in why for why in objections)  # no hang
    assert changed >= 40
    assert by_group >= 1
    assert batches >= 5


def errors(prog: Program, target: Target) -> list[str]:
    found = check_program(prog, target, ORDER)
    return [d.code for d in found if d.severity in (Severity.ERROR, Severity.WARNING)]


def same_order(before: Program, found: Scheduled, seed: int) -> None:
    """Communication is started in one order, all work is there, and a rank alone gets the same."""
    after = found.program
    for rank in range(before.world):
        old, new = before.rows_of(rank), after.rows_of(rank)
        pairs = [(before, np.arange(old.start, old.stop)), (after, np.arange(new.start, new.stop))]
        talk, work = [], []
        for prog, rows in pairs:
            kind = prog.kind[rows]
            talk.append(prog.first[rows[kind <= Kind.BARRIER]].tolist())
            local = (kind > Kind.BARRIER) & (kind != Kind.WAIT)
            work.append(prog.first[rows[local]].tolist())
        assert talk[0] == talk[1], seed
        assert work[0] == work[1], seed
        alone = build(
            before.definition,
            before.world,
            before.values,
            ranks=[rank],
            groups=before.groups.entries[1:],
        )
        assert told(apply(alone, found.passes), rank) == told(after, rank), seed


def test_what_is_in_flight_across_a_fence_in_the_program_stays_so() -> None:
    """The order of the text would otherwise be the faster one."""
    told = order("work = async all_reduce(x)\ncompute(1ms)\nwait(work)\ncompute(1ms)")
    assert told == ["start x", "run compute", "join x", "run compute"]
    assert order("all_reduce(x)\ncompute(1ms)\nx -> z") == ["run x", "run compute", "run copy"]
