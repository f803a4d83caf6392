"""The matrix: bytes from rank to rank, as a table whose cells are the darker the more they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.draw.words import bytes_text, place_of
from commlang.operations import Kind
from commlang.records import entity
from commlang.traffic import traffic, usual
from commlang.traffic.table import sums

if TYPE_CHECKING:
    from commlang.draw.subject import Subject
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.traffic import Traffic

EXACT = 64
"""Worlds up to this have a row for each rank."""
BLOCKS = 32
"""Rows of larger ones."""
STATEMENTS = 3
"""Statements that the tip of a cell names."""


@entity
class Matrix:
    """Bytes and messages from each block of ranks (row) to each (column).

    `first` is the first rank of each block, and the world at the end. `tips` says, by cell, by
    which statements.
    """

    traffic: Traffic
    first: Array
    bytes: Array
    messages: Array
    tips: dict[tuple[int, int], str]
    algorithms: str

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.first) - 1

    @property
    def exact(self) -> bool:
        """Whether each row is one rank."""
        return self.size == int(self.first[-1])

    def name(self, at: int) -> str:
        """The ranks of a row: `5` or `32–63`."""
        first, last = int(self.first[at]), int(self.first[at + 1]) - 1
        return f"{first}" if first == last else f"{first}–{last}"

    def told(self) -> str:
        """What the matrix is, in a line."""
        total = f"{bytes_text(self.traffic.total)} in {self.traffic.count:,} messages"
        return f"Bytes from each {self._row()} (row) to each (column): {total}"

    def _row(self) -> str:
        """What a row is."""
        sizes = np.diff(self.first)
        few, many = int(sizes.min()), int(sizes.max())
        return (
            "rank" if self.exact else f"block of {few if few == many else f'{few} or {many}'} ranks"
        )


def make_matrix(subject: Subject, most: int = EXACT, blocks: int = BLOCKS) -> Matrix:
    """The matrix of a subject: exact up to `most` ranks, in blocks of ranks above."""
    program = subject.program
    found, world = traffic(program), program.world
    size = world if world <= most else blocks
    block = np.arange(world) * size // world
    cell = block[found.src] * size + block[found.dst]
    matrix = Matrix(
        found,
        np.searchsorted(block, np.arange(size + 1)),
        sums(cell, found.bytes, size * size).reshape(size, size),
        sums(cell, found.messages, size * size).reshape(size, size),
        {},
        algorithms_text(program),
    )
    matrix.tips.update(_tips(program, found, cell, size))
    return matrix


def _tips(program: Program, found: Traffic, cell: Array, size: int) -> dict[tuple[int, int], str]:
    """By cell the statements that send most there."""
    statement, count = statements_of(program), max(len(program.sites), 1)
    pair, at, number = np.unique(
        cell * count + statement[program.site[found.row]], return_index=True, return_inverse=True
    )
    total = sums(number.reshape(-1), found.bytes, len(pair))
    order = np.lexsort((-total, pair // count))
    tips: dict[tuple[int, int], list[str]] = {}
    for one in order.tolist():
        row, column = divmod(int(pair[one]) // count, size)
        words = tips.setdefault((row, column), [])
        if len(words) < STATEMENTS:
            place = place_of(program, int(found.row[at[one]]))
            words.append(f"{bytes_text(int(total[one]))} by {place}")
    return {place: ", ".join(words) for place, words in tips.items()}


def statements_of(program: Program) -> Array:
    """By site the number of its statement, which may be met by way of several calls."""
    numbers: dict[tuple[str, int], int] = {}
    places = [(site.source.path, site.span.start) for site in program.sites]
    return np.array([numbers.setdefault(p, len(numbers)) for p in places], dtype=np.int64)


def algorithms_text(program: Program) -> str:
    """How the collectives of a program are taken to run; empty if it has none."""
    present = {Kind(kind) for kind in program.site_kind.tolist()}
    chosen = [f"{k.name.lower()} by {name}" for k, name in usual().items() if k in present]
    return (
        f"Collectives counted as backends usually run them: {', '.join(chosen)}." if chosen else ""
    )
