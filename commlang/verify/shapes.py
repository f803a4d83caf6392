"""Sets of worlds in words: `odd worlds from 3`, `2..64`.

What is said holds exactly of the worlds that were looked at, and of no others.
"""

from __future__ import annotations

from itertools import pairwise
from math import isqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FEW = 3
"""Fewer worlds than this are listed: they show no rule."""

PIECES = 8
"""Most worlds and ranges that are listed."""


def shape(some: Sequence[int], checked: Sequence[int]) -> str:
    """Which of the worlds that were looked at these are; both are sorted, `some` is not empty.

    A class such as `odd worlds` gets a `from` where it has smaller members, and a `to` where
    larger ones were looked at but are not among them.
    """
    if len(some) == 1:
        return f"world {some[0]}"
    if len(some) == len(checked):
        return "every world checked"
    if len(some) >= FEW:
        first, last, chosen = some[0], some[-1], set(some)
        around = [w for w in checked if first <= w <= last]
        for name, member in _classes():
            if all(member(w) == (w in chosen) for w in around):
                before = any(member(w) for w in range(1, first))
                after = any(member(w) for w in checked if w > last)
                return f"{name}{f' from {first}' * before}{f' to {last}' * after}"
    return f"worlds {listed(some)}"


def listed(worlds: Sequence[int]) -> str:
    """Sorted worlds as one would give them to `--world`: `2..64`, `2..64:2`, `3, 6..9, 12`."""
    steps = {b - a for a, b in pairwise(worlds)}
    if len(worlds) >= FEW and len(steps) == 1:
        (step,) = steps
        return f"{worlds[0]}..{worlds[-1]}" + (f":{step}" if step > 1 else "")
    pieces = [_piece(run) for run in _runs(worlds)]
    if len(pieces) > PIECES:
        pieces = [*pieces[:PIECES], f"… ({len(worlds)} worlds)"]
    return ", ".join(pieces)


def _classes() -> Iterator[tuple[str, Callable[[int], bool]]]:
    yield "every world", lambda w: True
    yield "odd worlds", lambda w: w % 2 == 1
    yield "even worlds", lambda w: w % 2 == 0
    yield "powers of two", _is_power
    yield "all but powers of two", lambda w: not _is_power(w)
    for m in range(3, 17):
        yield f"multiples of {m}", lambda w, m=m: w % m == 0
        yield f"all but multiples of {m}", lambda w, m=m: w % m != 0
    yield "primes", _is_prime
    yield "all but primes", lambda w: not _is_prime(w)
    yield "squares", _is_square
    yield "all but squares", lambda w: not _is_square(w)
    for m in range(3, 9):
        for r in range(1, m):
            yield f"worlds of the form {m} k + {r}", lambda w, m=m, r=r: w % m == r


def _is_power(world: int) -> bool:
    return world & (world - 1) == 0


def _is_prime(world: int) -> bool:
    return world > 1 and all(world % d for d in range(2, isqrt(world) + 1))


def _is_square(world: int) -> bool:
    return isqrt(world) ** 2 == world


def _runs(worlds: Sequence[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for world in worlds:
        if run and world != run[-1] + 1:
            yield run
            run = []
        run.append(world)
    if run:
        yield run


def _piece(run: list[int]) -> str:
    return f"{run[0]}..{run[-1]}" if len(run) >= FEW else ", ".join(map(str, run))
