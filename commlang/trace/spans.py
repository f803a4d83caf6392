"""When rows begin and end in a run, from the marks of the actions that run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.records import record
from commlang.schedule import Act

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.schedule import Action


@record
class Spans:
    """For each row the action that begins it and the one at whose end it is over, -1 for none.

    Actions are numbered per rank.
    """

    begin: Array
    finish: Array


def find_spans(program: Program, ranks: Iterable[list[Action]]) -> Spans:
    """The spans of all rows; a row that was started is over when the rank has joined it."""
    begin = np.full(len(program), -1, dtype=np.int64)
    finish = np.full(len(program), -1, dtype=np.int64)
    for actions in ranks:
        for number, action in enumerate(actions):
            for row in rows_begun(program, action):
                begin[row] = number
            for row in rows_ended(program, action):
                finish[row] = number
    return Spans(begin, finish)


def rows_begun(program: Program, action: Action) -> tuple[int, ...]:
    """The rows that begin with an action: those that it runs, or the wait that it is."""
    if action.act is not Act.JOIN:
        return action.rows
    return (action.row,) if program.kind[action.row] == Kind.WAIT else ()


def rows_ended(program: Program, action: Action) -> tuple[int, ...]:
    """The rows that are over at the end of an action."""
    if action.act is Act.START:
        return ()
    if action.act is Act.JOIN and program.kind[action.row] == Kind.WAIT:
        return (*action.rows, action.row)
    return action.rows
