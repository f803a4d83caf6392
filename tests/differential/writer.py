"""What phases of random patterns are written with: rows, handles, tags and operations.

All that moves in a sound phase goes from rows of x, which nothing writes, or from rows of y that
are finished, to rows of y that nobody else uses. So a sound pattern has no races, and what it
leaves can be worked out.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = ("float32", "float32", "float64", "int32", "int64", "bfloat16")

Lines = list[str]


class Writer:
    """Makes the choices of one pattern. `rooted` tells whether it calls rooted collectives."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random = Random(seed)
        self.world = random.choice((2, 3, 3, 4, 4, 5, 6))
        self.dtype = random.choice(DTYPES)
        self.rooted = False
        self.rows = 0
        self.done: list[int] = []
        """Rows of y that hold something that is known on all ranks."""
        self.fresh: list[tuple[int, int]] = []
        """Rows (the first, how many) that will be so at the end of the phase."""
        self.handles = 0
        self.late: Lines = []
        """Waits that are left to the end."""
        everyone = range(self.world)
        sizes = [random.randint(2, self.world) for _ in range(random.choice((0, 1, 2, 2)))]
        self.groups = [tuple(random.sample(everyone, size)) for size in sizes]

    def row(self, count: int = 1, *, known: bool = True) -> int:
        """The first of some rows of y that are used for the first time."""
        first = self.rows
        self.rows += count
        if known:
            self.fresh.append((first, count))
        return first

    def source(self) -> str:
        """Something to send."""
        if self.done and self.random.random() < 0.3:
            return f"y[{self.random.choice(self.done)}]"
        return f"x[{self.random.randrange(2 * self.world)}]"

    def tag(self) -> str:
        return self.random.choice(("", "", ", tag=1", ", tag=7"))

    def op(self) -> str:
        if self.dtype == "bfloat16":  # sums of sums would be rounded
            return self.random.choice(("max", "min"))
        return self.random.choice(("sum", "sum", "max", "min"))

    def maybe(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def handle(self) -> str:
        self.handles += 1
        return f"h{self.handles}"

    def on(self) -> tuple[tuple[int, ...], str]:
        """The members of a communicator, and the argument that names it."""
        number = self.random.randrange(len(self.groups) + 1)
        if number == len(self.groups):
            return tuple(range(self.world)), ""
        return self.groups[number], f", group=g{number}"


def phase(make: Callable[[Writer, bool], Lines]) -> Callable[[Writer, bool], Lines]:
    """Rows that a phase fills are for others once it is over."""

    def whole(pattern: Writer, faulty: bool) -> Lines:
        pattern.fresh = []
        lines = make(pattern, faulty)
        pattern.done += [a + i for a, count in pattern.fresh for i in range(count)]
        return lines

    return whole


def indented(lines: Lines) -> Lines:
    return [f"    {line}" for line in lines]


def block(head: str, lines: Lines) -> Lines:
    return [head, *indented(lines or ["pass"])]
