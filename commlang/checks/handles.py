"""Handles of asynchronous operations: what the rules on them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commlang.program.handles import NEVER, rebinding

if TYPE_CHECKING:
    from commlang.checks.facts import Facts
    from commlang.program import Program
    from commlang.program.columns import Array


class HandleUses(NamedTuple):
    """The rows that bind a handle, each with the row of its wait (-1 for none).

    `again` is the next row that binds the same handle, NEVER for none; `rebound` tells that this
    comes before the wait.
    """

    row: Array
    wait: Array
    again: Array
    rebound: Array


def handle_uses(program: Program) -> HandleUses:
    """Who binds handles in a program, and what becomes of them."""
    handles = program.handles
    row = handles.row[~handles.is_wait]
    wait, again = program.wait[row], rebinding(handles, len(program))
    return HandleUses(row, wait, again, (again != NEVER) & ((wait < 0) | (again < wait)))


def first_per_site(facts: Facts, rows: Array) -> list[int]:
    """The first of the rows for each statement, in order."""
    if not len(rows):
        return []
    _, first = np.unique(facts.program.site[rows], return_index=True)
    return sorted(rows[first].tolist())
