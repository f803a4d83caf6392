"""Program order in steps, for programs that end and for those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.draw import times
from commlang.draw.times import meeting_times, program_order
from commlang.program.matching import match_collectives, match_messages

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from commlang.program import Program


def order(program: Program) -> list[list[float | None]]:
    """Start, meeting and end of each row."""
    messages, calls = match_messages(program), match_collectives(program)
    timing = program_order(program, messages, calls).timing
    met = meeting_times(messages, calls, timing)
    columns = np.stack([timing.start, met, timing.end], axis=1)
    return [[None if np.isnan(x) else x for x in row] for row in columns.tolist()]


def test_a_chain_takes_a_step_for_each_message(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], n = 8):
    if rank > 0:
        recv(x, src=rank - 1)
    if rank < world - 1:
        send(x, dst=rank + 1)
"""
    assert order(program(text, 3)) == [[0, 0, 1], [0, 0, 1], [1, 1, 2], [0, 1, 2]]


def test_a_collective_waits_for_its_last_member(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], n = 8):
    if rank == 1:
        fill(x, 1)
        fill(x, 2)
    all_reduce(x)
"""
    assert order(program(text, 2)) == [[0, 2, 3], [0, 0, 1], [1, 1, 2], [2, 2, 3]]


def test_one_of_a_block_ends_before_the_block(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], y: float32[n], n = 8):
    if rank == 2:
        fill(x, 1)
    parallel:
        if rank == 0:
            send(x, dst=1)
            recv(y, src=2)
        if rank == 1:
            recv(y, src=0)
        if rank == 2:
            send(x, dst=0)
    fill(y, 1)
"""
    rows = order(program(text, 3))
    assert rows[:3] == [[0, 0, 1], [0, 1, 2], [2, 2, 3]]  # rank 0's block ends with its recv
    assert rows[3:5] == [[0, 0, 1], [1, 1, 2]]


def test_what_is_asynchronous_lasts_until_its_wait(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], y: float32[n], n = 8):
    work = async all_reduce(x)
    fill(y, 1)
    wait(work)
"""
    assert order(program(text, 1)) == [[0, 0, 3], [1, 1, 2], [2, 2, 3]]


def test_in_a_deadlock_nothing_ends_or_starts_any_more(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], y: float32[n], n = 8):
    fill(x, 1)
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
"""
    assert order(program(text, 2)) == [[0, 0, 1], [1, None, None], [None, None, None]] * 2


def test_what_lacks_a_counterpart_never_ends(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], n = 8):
    if rank == 0:
        recv(x, src=1)
    if rank == 1:
        all_reduce(x)
"""
    assert order(program(text, 2)) == [[0, None, None], [0, None, None]]


def test_only_so_many_steps_are_worked_out(
    program: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "MOST_STEPS", 10)
    made = program("one_f_one_b", 2)
    found = program_order(made, match_messages(made), match_collectives(made))
    assert np.nanmax(found.timing.end) <= 10
    assert found.cut == int(np.isnan(found.timing.end).sum()) > 0
