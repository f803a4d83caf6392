"""A program whose ranks come to their events in another order, with other waits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.columns import Handles
from commlang.records import record

if TYPE_CHECKING:
    from commlang.expand.record import Site
    from commlang.program import Program

_COLUMNS = ("rank", "nest", "site", "peer", "tag", "group", "first", "count", "numbers_at")


@record
class Join:
    """A wait for some rows."""

    rows: tuple[int, ...]


def rebuilt(program: Program, orders: list[list[int | Join]]) -> Program:
    """The program with each rank's rows in a new order, and the joins as its only waits.

    What a join names becomes asynchronous. The new waits stand for no handle of the text.
    """
    rows = [row for order in orders for row in order]
    waits = np.array([isinstance(row, Join) for row in rows], dtype=np.bool_)
    old = np.array([row.rows[0] if isinstance(row, Join) else row for row in rows], dtype=np.int64)
    place = np.full(len(program), -1, dtype=np.int64)
    place[old[~waits]] = np.flatnonzero(~waits)
    columns = {name: getattr(program, name)[old] for name in _COLUMNS}
    wait = np.full(len(rows), -1, dtype=np.int64)
    for at in np.flatnonzero(waits).tolist():
        join = rows[at]
        assert isinstance(join, Join)
        wait[place[list(join.rows)]] = at
    for name in ("nest", "peer", "group", "first", "numbers_at"):
        columns[name][waits] = -1
    columns["tag"][waits] = columns["count"][waits] = 0
    sites = _Sites(program)
    for at in np.flatnonzero(waits).tolist():
        columns["site"][at] = sites.waiting(int(program.site[old[at]]))
    for at in np.flatnonzero(wait >= 0).tolist():
        columns["site"][at] = sites.started(int(program.site[old[at]]))
    none = np.zeros(0, dtype=np.int64)
    sizes = [len(order) for order in orders]
    changed = replace(
        program,
        **columns,
        sites=tuple(sites.all),
        # Beyond all keys of the old order, since blocks keep theirs.
        key=_beyond(program) + np.concatenate([none, *(np.arange(size) for size in sizes)]),
        rank_start=np.concatenate([[0], np.cumsum(sizes)]),
    )
    return replace(without_handles(changed), wait=wait)


def without_handles(program: Program) -> Program:
    """The program with none of the text's handles, and nothing that joins anything."""
    none = np.zeros(0, dtype=np.int64)
    flags = none.astype(np.bool_)
    wait = np.full(len(program), -1, dtype=np.int64)
    return replace(program, wait=wait, handles=Handles(none, none, none, flags, flags, none))


def _beyond(program: Program) -> int:
    return 1 + max(int(program.key.max(initial=0)), int(program.nest.max(initial=0)))


class _Sites:
    """The statements of a program, and what they become."""

    def __init__(self, program: Program) -> None:
        self.all: list[Site] = list(program.sites)
        self._made: dict[tuple[int, bool], int] = {}

    def started(self, number: int) -> int:
        """The statement as an asynchronous one."""
        site = self.all[number]
        return number if site.asynchronous else self._make(number, replace(site, asynchronous=True))

    def waiting(self, number: int) -> int:
        """A wait for the statement, told by its place."""
        site = self.all[number]
        gone = {"op": None, "dtype": None, "arguments": (), "extern": None, "handle": None}
        wait = replace(site, kind=Kind.WAIT, name="wait", asynchronous=False, **gone)
        return self._make(number, wait)

    def _make(self, number: int, site: Site) -> int:
        key = (number, site.asynchronous)
        if key not in self._made:
            self._made[key] = len(self.all)
            self.all.append(site)
        return self._made[key]
