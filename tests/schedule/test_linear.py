"""The order of a rank's host: what it starts, runs and joins, and that it cannot block for ever."""

from __future__ import annotations

from commlang.program import Program, build
from commlang.program.matching import match_collectives, match_messages
from commlang.resolve.modules import load_module
from commlang.schedule import Act, Action, linearise
from commlang.source import Source

HEAD = "pattern f(x: float32[n], y: float32[n], n = 8):\n"


def program(body: str, world: int) -> Program:
    module = load_module(Source(HEAD + body))
    return build(module.symbols["f"], world)


def told(prog: Program, rank: int) -> list[str]:
    """`run send`, `join recv`: the actions of a rank in words."""
    return [_words(prog, action) for action in linearise(prog, rank, lambda: prog)]


def _words(prog: Program, action: Action) -> str:
    names = " ".join(prog.site_of(row).name for row in action.rows)
    return f"{action.act.value} {names}".strip()


def test_statements_run_in_order() -> None:
    prog = program("    all_reduce(x)\n    x -> y\n    barrier()\n", 2)
    assert told(prog, 1) == ["run all_reduce", "run copy", "run barrier"]


def test_a_flat_block_is_one_batch() -> None:
    block = "    parallel:\n        send(x, dst=ranks.next)\n        recv(y, src=ranks.prev)\n"
    assert told(program(block + "    y -> x\n", 3), 0) == ["batch send recv", "run copy"]


def test_two_blocks_are_two_batches() -> None:
    block = "    parallel:\n        send(x, dst=ranks.next)\n        recv(y, src=ranks.prev)\n"
    assert told(program(block * 2, 3), 2) == ["batch send recv"] * 2


def test_a_wait_joins_what_is_outstanding() -> None:
    body = (
        "    for i in range(2):\n        h[i] = async all_reduce(x)\n        wait(h[i])\n"
        "    k = async all_reduce(y)\n    wait(k)\n    wait(k)\n"
    )
    assert told(program(body, 2), 0) == [
        "start all_reduce",
        "join all_reduce",
        "start all_reduce",
        "join all_reduce",
        "start all_reduce",
        "join all_reduce",
        "join",
    ]


def test_a_block_that_waits_is_over_when_that_is() -> None:
    body = (
        "    h = async all_reduce(x)\n    k = async barrier()\n"
        "    parallel:\n        wait(h)\n        fill(y, 0)\n        wait(k)\n"
        "    j = async all_reduce(x)\n    parallel:\n        wait(j)\n"
    )
    assert told(program(body, 2), 0) == [
        *("start all_reduce", "start barrier"),
        *("batch fill", "join all_reduce", "join barrier"),
        *("start all_reduce", "join all_reduce"),
    ]


def test_accumulations_of_a_block_follow_it_in_the_order_of_the_text() -> None:
    body = "    parallel for r in ranks[1:]:\n        x @ r -> y @ 0, op=sum\n"
    prog = program(body, 4)
    assert told(prog, 0) == ["batch recv recv recv", *["run accumulate"] * 3]
    rows = prog.rows_of(0)
    order = [int(prog.operands.buffer[prog.first[row]]) for row in rows[3:]]
    assert order == sorted(order)
    assert told(prog, 2) == ["batch send"]


SEQUENCES = """\
    parallel:
        sequence:
            if rank == 0:
                send(x, dst=1, tag=1)
                recv(x, src=1, tag=2)
            else:
                recv(x, src=0, tag=1)
                send(x, dst=0, tag=2)
        sequence:
            if rank == 0:
                recv(y, src=1, tag=3)
                send(y, dst=1, tag=4)
            else:
                send(y, dst=0, tag=3)
                recv(y, src=0, tag=4)
"""


def test_sequences_side_by_side_are_interleaved_by_level() -> None:
    prog = program(SEQUENCES, 2)
    assert told(prog, 0) == [
        "start send",
        "start recv",
        "join send",
        "join recv",
        "start recv",
        "start send",
        "join recv",
        "join send",
    ]
    runs_to_the_end(prog)


HALO = """\
    parallel:
        sequence:
            x[0:2] -> y[0:2]
            parallel:
                send(y[0:2], dst=ranks.next, tag=1)
                recv(y[2:4], src=ranks.prev, tag=1)
            y[2:4] -> x[0:2]
        sequence:
            x[4:6] -> y[4:6]
            parallel:
                send(y[4:6], dst=ranks.prev, tag=2)
                recv(y[6:8], src=ranks.next, tag=2)
            y[6:8] -> x[4:6]
"""


def test_local_work_of_a_sequence_stands_where_it_belongs() -> None:
    prog = program(HALO, 3)
    runs_to_the_end(prog)
    for rank in range(3):
        words = told(prog, rank)
        assert words[:2] == ["run copy", "run copy"]
        assert words[-2:] == ["run copy", "run copy"]
        assert words.count("join recv") == words.count("join send") == 2


def runs_to_the_end(prog: Program) -> None:
    """Execute all hosts with one thread each: a join blocks until the other end has started."""
    partner = match_messages(prog).partner
    calls = match_collectives(prog)
    assert not len(calls.row)
    hosts = [linearise(prog, rank, lambda: prog) for rank in range(prog.world)]
    at, started = [0] * prog.world, set[int]()
    moved = True
    while moved:
        moved = False
        for rank, actions in enumerate(hosts):
            while at[rank] < len(actions) and _can(prog, actions[at[rank]], started, partner):
                at[rank] += 1
                moved = True
    assert at == [len(actions) for actions in hosts]


def _can(prog: Program, action: Action, started: set[int], partner: object) -> bool:
    comm = [row for row in action.rows if prog.site_of(row).kind.is_message]
    if action.act is not Act.JOIN:
        started.update(comm)
    if action.act is Act.START:
        return True
    return all(int(partner[row]) in started for row in comm)  # type: ignore[index]
