"""Times of the order that ran, as times of the program as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.schedule import Chunk


def as_written(
    program: Program, ran: Program, chunks: Sequence[Chunk], start: Array, end: Array
) -> tuple[Array, Array]:
    """Start and end per row of `program`, from those per row of `ran`, which passes made of it.

    Passes keep the order of what one statement does on one rank, and the pieces of an operation
    lie in it one after the other. Waits are placed anew, so those of the text have NaN.
    """
    pieces = {chunk.key: chunk.pieces for chunk in chunks}
    old = np.flatnonzero(program.kind != Kind.WAIT)
    old = old[_order(program, old)]
    old = np.repeat(old, [pieces.get(key, 1) for key in program.key[old].tolist()])
    new = np.flatnonzero(ran.kind != Kind.WAIT)
    new = new[_order(ran, new)]
    first, last = np.full(len(program), np.inf), np.full(len(program), -np.inf)
    np.fmin.at(first, old, start[new])
    np.fmax.at(last, old, end[new])
    first[np.isinf(first)] = np.nan
    last[np.isinf(last)] = np.nan
    return first, last


def _order(program: Program, rows: Array) -> Array:
    """The order by rank and statement, of one statement on one rank that of the program."""
    numbers: dict[tuple[str, int, Kind, str], int] = {}
    site = [
        numbers.setdefault((s.source.path, s.span.start, s.kind, s.name), len(numbers))
        for s in program.sites
    ]
    place = np.array(site, dtype=np.int64)[program.site[rows]]
    return np.lexsort((rows, place, program.rank[rows]))
